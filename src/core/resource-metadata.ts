/**
 * Owns: where an upstream's protected-resource metadata lies, and how it and the challenge that points to it are
 * made to name this gateway (design, law 24; RFC 9728 sections 3.1 and 5.1).
 */
import type { RawHeaders } from './headers.js';
import { readObject, scanText } from './json.js';

const WELL_KNOWN = '/.well-known/oauth-protected-resource';

/** The paths at which the metadata of the resource at `path` may lie, in the order in which they are tried. */
export function metadataPaths(path: string): readonly string[] {
  const cut = path.indexOf('?');
  const plain = cut === -1 ? path : path.slice(0, cut);
  const query = cut === -1 ? '' : path.slice(cut);
  return plain === '/' ? [`${WELL_KNOWN}${query}`] : [`${WELL_KNOWN}${plain}${query}`, WELL_KNOWN];
}

/** Where this gateway answers for an upstream, under its public address. */
export interface PublicNames {
  readonly resource: string;
  readonly metadata: string;
}

export function publicNames(publicUrl: string, upstream: string): PublicNames {
  const base = publicUrl.replace(/\/+$/, '');
  const { origin, pathname } = new URL(base);
  const prefix = pathname === '/' ? '' : pathname;
  return {
    resource: `${base}/mcp/${upstream}`,
    metadata: `${origin}${WELL_KNOWN}${prefix}/mcp/${upstream}`,
  };
}

/** The metadata document with `resource` naming this gateway and all else as it came; undefined where it is none. */
export function renameResource(document: Buffer, names: PublicNames): Buffer | undefined {
  const renamed = Buffer.from(JSON.stringify(names.resource));
  try {
    const { start } = scanText(document);
    const { members } = readObject(document, start);
    const resources = members.filter(({ key }) => key === 'resource');
    const parts: Buffer[] = [];
    let at = 0;
    for (const value of resources) {
      parts.push(document.subarray(at, value.start), renamed);
      at = value.end;
    }
    if (resources.length === 0) {
      parts.push(Buffer.from('{"resource":'), renamed, Buffer.from(members.length === 0 ? '' : ','));
      at = start + 1;
    }
    return Buffer.concat([...parts, document.subarray(at)]);
  } catch {
    return undefined;
  }
}

/** The fields of an answer, each challenge pointing to the metadata at this gateway. */
export function renameChallenges(headers: RawHeaders, names: PublicNames): RawHeaders {
  return headers.map((value, i) => {
    const isChallenge = i % 2 === 1 && headers[i - 1]?.toLowerCase() === 'www-authenticate';
    if (!isChallenge) return value;
    // Quoted values of other parameters are passed over, whatever they say.
    return value.replace(
      /(\bresource_metadata\s*=\s*)(?:"(?:[^"\\]|\\.)*"|[^\s,]+)|"(?:[^"\\]|\\.)*"/gi,
      (found, name: string | undefined) => (name === undefined ? found : `${name}"${names.metadata}"`),
    );
  });
}
