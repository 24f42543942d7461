/**
 * Owns: the bodies of the requests for the later pages of a walk: the client's own request, member by
 * member as it was sent, with another id and the cursor as the upstream sent it (design, laws 9 and 10).
 */
import type { Member } from './json.js';
import type { RpcRequest } from './message.js';

/** The client's request, asking for the page behind `cursorRaw` under `id`. */
export function bodyForPage(rpc: RpcRequest, cursorRaw: string, id: string): Buffer {
  const params = rpc.params
    .filter((member) => member.key !== 'cursor')
    .map((member) => raw(rpc.bytes, member));
  const paramsText = `"params":{${[...params, `"cursor":${cursorRaw}`].join(',')}}`;
  const members = rpc.members.map((member) => {
    if (member.key === 'id') return `"id":${JSON.stringify(id)}`;
    return member.key === 'params' ? paramsText : raw(rpc.bytes, member);
  });
  if (!rpc.members.some((member) => member.key === 'params')) members.push(paramsText);
  return Buffer.from(`{${members.join(',')}}`);
}

/** Name and value as they were sent; UTF-8 text survives the way through a string unchanged. */
function raw(bytes: Buffer, member: Member): string {
  return bytes.toString('utf8', member.keyStart, member.end);
}
