/** The tools of the conformance suite's server that answer at once, report on the way, or change something. */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type CallToolResult,
  type ContentBlock,
  fromJsonSchema,
  type JsonSchemaType,
  type McpServer,
} from '@modelcontextprotocol/server';
import { PIXEL, SILENCE } from './conformance-offers.js';

const image: ContentBlock = { type: 'image', data: PIXEL, mimeType: 'image/png' };
const audio: ContentBlock = { type: 'audio', data: SILENCE, mimeType: 'audio/wav' };

const embedded = (uri: string, mimeType: string, text: string): ContentBlock => ({
  type: 'resource',
  resource: { uri, mimeType, text },
});

/** The suite looks for each of these keywords in the list. */
const DIALECT: JsonSchemaType = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
};

/** It travels in the header `Mcp-Param-Region` as well. */
const REGION = { type: 'string' as const, 'x-mcp-header': 'Region' };
const IN_HEADER: JsonSchemaType = { type: 'object', properties: { region: REGION }, required: ['region'] };

export function addTools(server: McpServer, announce: (list: 'tools' | 'prompts') => void): void {
  addContent(server);
  addReports(server);

  server.registerTool('test_error_handling', { description: 'Fails' }, () => {
    throw new Error('This tool fails on purpose');
  });
  server.registerTool('test_trigger_tool_change', { description: 'Announces other tools' }, () => {
    announce('tools');
    return say('announced');
  });
  server.registerTool('test_trigger_prompt_change', { description: 'Announces other prompts' }, () => {
    announce('prompts');
    return say('announced');
  });
  server.registerTool(
    'json_schema_2020_12_tool',
    { description: 'Has a schema of many keywords', inputSchema: fromJsonSchema(DIALECT) },
    () => say('valid'),
  );
  server.registerTool(
    'test_header_parameter',
    { description: 'Has a parameter in a header', inputSchema: fromJsonSchema(IN_HEADER) },
    () => say('valid'),
  );
}

export const say = (text: string): CallToolResult => ({ content: [{ type: 'text', text }] });

function addContent(server: McpServer): void {
  const answers: Readonly<Record<string, ContentBlock[]>> = {
    test_simple_text: [{ type: 'text', text: 'Nothing but text.' }],
    test_image_content: [image],
    test_audio_content: [audio],
    test_embedded_resource: [embedded('test://embedded-resource', 'text/plain', 'An embedded resource.')],
    test_multiple_content_types: [
      { type: 'text', text: 'Of several types:' },
      image,
      embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
    ],
  };
  for (const [name, content] of Object.entries(answers)) {
    server.registerTool(name, { description: `Answers as ${name} does` }, () => ({ content }));
  }
}

/** What these wait for is real time: the suite wants to see the messages come one by one. */
function addReports(server: McpServer): void {
  for (const name of ['test_tool_with_logging', 'test_logging_tool']) {
    server.registerTool(name, { description: 'Logs thrice' }, async ({ mcpReq }) => {
      for (const step of ['started', 'goes on', 'ends']) {
        await mcpReq.log('info', `The tool ${step}`);
        await sleep(10);
      }
      return say('logged');
    });
  }
  server.registerTool(
    'test_tool_with_progress',
    { description: 'Reports progress thrice' },
    async ({ mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken;
      for (const progress of [0, 50, 100]) {
        const params = { progressToken, progress, total: 100 };
        if (progressToken !== undefined) await mcpReq.notify({ method: 'notifications/progress', params });
        await sleep(10);
      }
      return say('done');
    },
  );
  server.registerTool(
    'test_reconnection',
    { description: 'Ends its stream and goes on' },
    async ({ http }) => {
      http?.closeSSE?.();
      await sleep(50);
      return say('taken up again');
    },
  );
}
