/** The published JSON Schemas of the protocol, kept beside the repository; absent where it stands alone. */
import { existsSync, readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';

const FOLDER = new URL('../../../shared/reference/schema/', import.meta.url);

export const hasSchemas = existsSync(FOLDER);

/** What is wrong with `value` as the definition `name` has it; the empty list where nothing is. */
export type Check = (name: string, value: unknown) => string[];

/** A check against one revision, which is read at its first use. It throws for a definition that there is not. */
export function schemaOf(version: '2026-07-28' | '2025-11-25'): Check {
  let loaded: Ajv2020 | undefined;
  function load(): Ajv2020 {
    const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
    return ajv.addSchema(
      JSON.parse(readFileSync(new URL(`mcp-${version}.schema.json`, FOLDER), 'utf8')),
      'mcp',
    );
  }
  return (name, value) => {
    loaded ??= load();
    const validate = loaded.compile({ $ref: `mcp#/$defs/${name}` });
    validate(value);
    return (validate.errors ?? []).map((error) => `${error.instancePath} ${error.message}`);
  };
}
