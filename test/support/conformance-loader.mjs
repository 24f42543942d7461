/**
 * Lets the conformance suite start on Node 20: it asks for `globSync` of `fs`, which came with Node 22, and which no
 * command but `tier-check` calls. Given to its process with `--import`.
 */
import * as fs from 'node:fs';
import { register } from 'node:module';

const FS = 'export * from "node:fs"; export const globSync = undefined;';

const HOOKS = `
  const url = ${JSON.stringify(`data:text/javascript,${encodeURIComponent(FS)}`)};
  export function resolve(specifier, context, next) {
    const bySuite = context.parentURL?.includes('/@modelcontextprotocol/conformance/');
    return specifier === 'fs' && bySuite ? { url, shortCircuit: true } : next(specifier, context);
  }
`;

if (!('globSync' in fs)) register(`data:text/javascript,${encodeURIComponent(HOOKS)}`);
