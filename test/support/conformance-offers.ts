/** The prompts and resources of the conformance suite's server. */
import {
  completable,
  type GetPromptResult,
  inputRequired,
  type McpServer,
  ResourceTemplate,
} from '@modelcontextprotocol/server';
import { z } from 'zod';

/** A red pixel, as PNG. */
export const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
/** No sound at all, as WAV. */
export const SILENCE = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=';

type Content = GetPromptResult['messages'][number]['content'];

const ask = (...contents: Content[]): GetPromptResult => ({
  messages: contents.map((content) => ({ role: 'user', content })),
});

export function addPrompts(server: McpServer): void {
  server.registerPrompt('test_simple_prompt', { description: 'Nothing but text' }, () =>
    ask({ type: 'text', text: 'A simple prompt.' }),
  );
  const two = z.object({
    arg1: completable(z.string(), (value) => ['hello', 'help'].filter((word) => word.startsWith(value))),
    arg2: z.string(),
  });
  server.registerPrompt(
    'test_prompt_with_arguments',
    { description: 'Says its arguments', argsSchema: two },
    ({ arg1, arg2 }) => ask({ type: 'text', text: `The arguments: arg1='${arg1}', arg2='${arg2}'` }),
  );
  server.registerPrompt(
    'test_prompt_with_embedded_resource',
    { description: 'Embeds a resource', argsSchema: z.object({ resourceUri: z.string() }) },
    ({ resourceUri: uri }) =>
      ask(
        { type: 'resource', resource: { uri, mimeType: 'text/plain', text: 'Its content.' } },
        { type: 'text', text: 'Read it.' },
      ),
  );
  server.registerPrompt('test_prompt_with_image', { description: 'Has an image' }, () =>
    ask({ type: 'image', data: PIXEL, mimeType: 'image/png' }, { type: 'text', text: 'Look at it.' }),
  );
  server.registerPrompt(
    'test_input_required_result_prompt',
    { description: 'Asks the user first' },
    ({ mcpReq }) => {
      if (mcpReq.inputResponses?.user_context !== undefined)
        return ask({ type: 'text', text: 'In context.' });
      const user_context = inputRequired.elicit({
        message: 'In which context?',
        requestedSchema: {
          type: 'object',
          properties: { context: { type: 'string' } },
          required: ['context'],
        },
      });
      return inputRequired({ inputRequests: { user_context } });
    },
  );
}

export function addResources(server: McpServer): void {
  const text = { description: 'Text', mimeType: 'text/plain' };
  for (const name of ['static-text', 'watched-resource']) {
    server.registerResource(name, `test://${name}`, text, () => ({
      contents: [{ uri: `test://${name}`, mimeType: 'text/plain', text: `The text of ${name}.` }],
    }));
  }
  const binary = { description: 'An image', mimeType: 'image/png' };
  server.registerResource('static-binary', 'test://static-binary', binary, ({ href: uri }) => ({
    contents: [{ uri, mimeType: 'image/png', blob: PIXEL }],
  }));
  server.registerResource(
    'template',
    new ResourceTemplate('test://template/{id}/data', { list: undefined }),
    { description: 'Data by id', mimeType: 'application/json' },
    ({ href: uri }, { id }) => ({
      contents: [{ uri, mimeType: 'application/json', text: JSON.stringify({ id, templateTest: true }) }],
    }),
  );
  server.server.setRequestHandler('resources/subscribe', () => ({}));
  server.server.setRequestHandler('resources/unsubscribe', () => ({}));
}
