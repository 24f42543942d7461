/**
 * The tools of the conformance suite's server that ask the client for something first. A client of 2026-07-28 calls
 * again with what was asked; for one of 2025-11-25 the SDK itself sends the requests, and calls again.
 */
import {
  type InputRequest,
  type InputRequests,
  inputRequired,
  inputResponse,
  type McpServer,
  type RequestStateCodec,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { z } from 'zod';
import { say } from './conformance-tools.js';

/** What a call has got so far, sealed on its way through the client. */
export interface Progress {
  readonly round: number;
}

type Properties = Extract<
  Parameters<typeof inputRequired.elicit>[0]['requestedSchema'],
  { type: 'object' }
>['properties'];

const form = (message: string, properties: Properties): InputRequest =>
  inputRequired.elicit({
    message,
    requestedSchema: { type: 'object', properties, required: Object.keys(properties) },
  });

const sample = (text: string): InputRequest =>
  inputRequired.createMessage({
    messages: [{ role: 'user', content: { type: 'text', text } }],
    maxTokens: 100,
  });

const askName = form('What is your name?', { name: { type: 'string' } });
const confirm = form('Is that so?', { ok: { type: 'boolean' } });

const OPTIONS = ['option1', 'option2', 'option3'];
const titled = (ordinals: readonly string[], noun: string) =>
  ordinals.map((ordinal, index) => ({ const: `value${index + 1}`, title: `${ordinal} ${noun}` }));
const ORDINALS = ['First', 'Second', 'Third'];

const defaults = form('Take these, or others', {
  name: { type: 'string', default: 'John Doe' },
  age: { type: 'integer', default: 30 },
  score: { type: 'number', default: 95.5 },
  status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
  verified: { type: 'boolean', default: true },
});

const choices = form('Choose', {
  untitledSingle: { type: 'string', enum: OPTIONS },
  titledSingle: { type: 'string', oneOf: titled(ORDINALS, 'Option') },
  legacyEnum: {
    type: 'string',
    enum: ['opt1', 'opt2', 'opt3'],
    enumNames: ['Option One', 'Option Two', 'Option Three'],
  },
  untitledMulti: { type: 'array', items: { type: 'string', enum: OPTIONS } },
  titledMulti: { type: 'array', items: { anyOf: titled(ORDINALS, 'Choice') } },
});

export function addRounds(server: McpServer, progress: RequestStateCodec<Progress>): void {
  addQuestions(server);
  addSealed(server, progress);

  const withPrompt = { description: 'Has a model answer', inputSchema: z.object({ prompt: z.string() }) };
  server.registerTool('test_sampling', withPrompt, ({ prompt }, context) =>
    asked(context, { answer: sample(prompt) }),
  );
  const withMessage = { description: 'Asks the user', inputSchema: z.object({ message: z.string() }) };
  server.registerTool('test_elicitation', withMessage, ({ message }, context) =>
    asked(context, { user: form(message, { username: { type: 'string' }, email: { type: 'string' } }) }),
  );
  server.registerTool(
    'test_input_required_result_capabilities',
    { description: 'Asks for what the client can do' },
    (context) => {
      const capabilities = server.server.getClientCapabilities();
      return asked(context, {
        ...(capabilities?.elicitation && { user_name: askName }),
        ...(capabilities?.sampling && { greeting: sample('Greet somebody') }),
      });
    },
  );
}

/** Those of the requests that have no answer yet, or none of the kind that they want. */
function missingOf({ mcpReq }: ServerContext, requests: InputRequests): InputRequests {
  return Object.fromEntries(
    Object.entries(requests).filter(
      ([key, request]) => !answers(request, inputResponse(mcpReq.inputResponses, key)),
    ),
  );
}

function answers(request: InputRequest, response: ReturnType<typeof inputResponse>): boolean {
  switch (response.kind) {
    case 'missing':
      return false;
    case 'elicit':
      return request.method === 'elicitation/create' && fits(request, response.content ?? {});
    case 'sampling':
      return request.method === 'sampling/createMessage';
    case 'roots':
      return request.method === 'roots/list';
  }
}

/** Whether each value is of its type; more than that is not asked here. */
function fits(request: InputRequest, content: Record<string, unknown>): boolean {
  const properties: Properties =
    request.params !== undefined && 'requestedSchema' in request.params
      ? request.params.requestedSchema.properties
      : {};
  return Object.entries(properties).every(([name, { type }]) => {
    const value = content[name];
    if (type === 'array') return Array.isArray(value);
    return typeof value === (type === 'integer' ? 'number' : type);
  });
}

function asked(context: ServerContext, requests: InputRequests) {
  const inputRequests = missingOf(context, requests);
  if (Object.keys(inputRequests).length > 0) return inputRequired({ inputRequests });
  return say(`Got ${JSON.stringify(context.mcpReq.inputResponses ?? {})}`);
}

function addQuestions(server: McpServer): void {
  const questions: Readonly<Record<string, InputRequests>> = {
    test_input_required_result_elicitation: { user_name: askName },
    test_input_required_result_sampling: { capital_question: sample('What is the capital of France?') },
    test_input_required_result_list_roots: { client_roots: inputRequired.listRoots() },
    test_missing_capability: { answer: sample('What is needed here?') },
    test_streaming_elicitation: { user_name: askName },
    test_elicitation_sep1034_defaults: { user: defaults },
    test_elicitation_sep1330_enums: { user: choices },
  };
  for (const [name, requests] of Object.entries(questions)) {
    server.registerTool(name, { description: `Asks as ${name} does` }, (context) => asked(context, requests));
  }
}

/** Those that send their state along: each of its rounds has requests, and none is entered but with its seal. */
function addSealed(server: McpServer, progress: RequestStateCodec<Progress>): void {
  const tools: Readonly<Record<string, readonly InputRequests[]>> = {
    test_input_required_result_request_state: [{ confirm }],
    test_input_required_result_tampered_state: [{ confirm }],
    test_input_required_result_multiple_inputs: [
      {
        user_name: askName,
        greeting: sample('Greet somebody'),
        client_roots: inputRequired.listRoots(),
      },
    ],
    test_input_required_result_multi_round: [
      { step1: askName },
      { step2: form('Which colour?', { color: { type: 'string' } }) },
    ],
  };
  for (const [name, rounds] of Object.entries(tools)) {
    server.registerTool(name, { description: `Asks as ${name} does` }, async (context) => {
      const state = context.mcpReq.requestState<Progress>();
      const current = state?.round ?? 0;
      const got = state !== undefined && Object.keys(missingOf(context, rounds[current] ?? {})).length === 0;
      const round = got ? current + 1 : current;
      const inputRequests = rounds[round];
      if (inputRequests === undefined) return say('state-ok');
      return inputRequired({ inputRequests, requestState: await progress.mint({ round }) });
    });
  }
}
