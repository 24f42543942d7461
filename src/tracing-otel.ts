/**
 * Owns: spans with OpenTelemetry, by its conventions for MCP (semantic conventions, gen-ai/mcp), sent by OTLP over HTTP.
 * The packages read the standard `OTEL_` variables themselves. Loaded only where traces are wanted.
 */
import {
  type Attributes,
  type Context,
  type Link,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { setGlobalErrorHandler, W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { filterHeaders, type RawHeaders, singleValue } from './core/headers.js';
import { eraOf, HEADER } from './core/protocol.js';
import type { FetchSpan, RequestSpan, TracedEnd, TracedRequest, Tracer } from './tracing.js';

const NAME = 'mcp-cache-gateway';
const CONTEXT_FIELDS: readonly string[] = ['traceparent', 'tracestate'];

const propagator = new W3CTraceContextPropagator();

/** A tracer that exports to where OTEL_EXPORTER_OTLP_ENDPOINT says; `onFailure` is told of each lot that was not taken. */
export function createOtelTracer(version: string, onFailure: (error: unknown) => void): Tracer {
  setGlobalErrorHandler(onFailure);
  const provider = new BasicTracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': NAME, 'service.version': version }))
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  });
  const tracer = provider.getTracer(NAME, version);

  function begin(request: TracedRequest): RequestSpan {
    const { parent, links } = originOf(request);
    const attributes = { 'mcp.method.name': request.method, 'mcp_cache_gateway.upstream': request.upstream };
    const declared = singleValue(request.headers, HEADER.protocolVersion);
    // Whatever else a client writes there is its own business.
    const protocolVersion = declared !== undefined && eraOf(declared) !== undefined ? declared : undefined;
    const span = tracer.startSpan(
      request.method,
      {
        kind: SpanKind.SERVER,
        links,
        attributes: {
          ...attributes,
          'network.transport': 'tcp',
          'network.protocol.name': 'http',
          ...(protocolVersion !== undefined && { 'mcp.protocol.version': protocolVersion }),
        },
      },
      parent,
    );
    const context = trace.setSpan(parent, span);
    return {
      fetch: ({ origin, method }) => {
        const { hostname, port } = new URL(origin);
        const address = { 'server.address': hostname, ...(port !== '' && { 'server.port': Number(port) }) };
        const fetched = { ...attributes, ...address, 'http.request.method': method };
        return beginFetch(request.method, fetched, context);
      },
      end(end) {
        span.setAttributes(attributesOf(end));
        if (end.failure !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: end.failure });
        span.end();
      },
    };
  }

  function beginFetch(name: string, attributes: Attributes, context: Context): FetchSpan {
    const span = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes }, context);
    return {
      headersFor: (headers) => withContext(headers, trace.setSpan(context, span)),
      end(status) {
        if (status !== undefined) span.setAttribute('http.response.status_code', status);
        if (status === undefined || status >= 400) {
          span.setAttribute('error.type', status === undefined ? 'no-answer' : String(status));
          span.setStatus({ code: SpanStatusCode.ERROR });
        }
        span.end();
      },
    };
  }

  return { begin, close: () => provider.shutdown().catch(() => {}) };
}

/**
 * The context that the message itself carries is the parent: it is the caller's own span (SEP-414). That of the header is
 * the transport's, and is linked then; where the message carries none, it is the parent.
 */
function originOf({ meta, headers }: TracedRequest): { readonly parent: Context; readonly links: Link[] } {
  const fromMeta = extract((name) => meta(name));
  const fromHeader = extract((name) => singleValue(headers, name));
  if (trace.getSpanContext(fromMeta) === undefined) return { parent: fromHeader, links: [] };
  const context = trace.getSpanContext(fromHeader);
  return { parent: fromMeta, links: context === undefined ? [] : [{ context }] };
}

function extract(read: (name: string) => unknown): Context {
  return propagator.extract(ROOT_CONTEXT, read, {
    keys: () => [...CONTEXT_FIELDS],
    get(carrier, name) {
      const value = carrier(name);
      return typeof value === 'string' ? value : undefined;
    },
  });
}

function withContext(headers: RawHeaders, context: Context): RawHeaders {
  const fields: string[] = [];
  propagator.inject(context, fields, { set: (carrier, name, value) => void carrier.push(name, value) });
  return [...filterHeaders(headers, (name) => !CONTEXT_FIELDS.includes(name)), ...fields];
}

function attributesOf({ status, outcome, reason, collapsed, pages, failure }: TracedEnd): Attributes {
  return {
    'http.response.status_code': status,
    ...(outcome !== undefined && { 'mcp_cache_gateway.outcome': outcome }),
    ...(reason !== undefined && { 'mcp_cache_gateway.reason': reason }),
    ...(collapsed === true && { 'mcp_cache_gateway.collapsed': true }),
    ...(pages !== undefined && { 'mcp_cache_gateway.pages': pages }),
    ...(failure !== undefined && { 'error.type': failure }),
  };
}
