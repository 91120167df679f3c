// A function that makes the host call which its input describes, and returns the result.
import { compileSource } from '#examples/functions/compile.ts'
import type { TestTenant } from '#test/support/runtime.ts'
import { readAll } from './assemblyscript.ts'

const separator = '\u001e'

export const compileHostCaller = (): Promise<Uint8Array<ArrayBuffer>> =>
  compileSource(`${readAll}
import { HostResponse, query, tryFetch, tryGet, tryPut, tryQuery, tryRemove } from './tenantry.as'
const parts = readAll().split('${separator}')
const what = parts[0]
if (what == 'must') process.stdout.write(query(parts[1]))
else {
  const result: HostResponse =
    what == 'query' ? tryQuery(parts[1], parts[2])
    : what == 'get' ? tryGet(parts[1])
    : what == 'put' ? tryPut(parts[1], parts[2], String.UTF8.encode(parts[3]))
    : what == 'put much' ? tryPut(parts[1], parts[2], new ArrayBuffer(<i32>parseInt(parts[3])))
    : what == 'remove' ? tryRemove(parts[1])
    : tryFetch(parts[1], String.UTF8.encode(parts[2]))
  process.stdout.write('Status: ' + (result.ok ? '200' : '299') + '\\nContent-Type: text/plain\\n\\n')
  if (result.bytes.byteLength > 1000000) process.stdout.write(result.bytes.byteLength.toString())
  else process.stdout.write(result.text)
}
`)

/** The result of a host call, as the function returned it. */
export interface HostResult {
  ok: boolean
  text: string
  /** The code of the error, or an empty string after a success. */
  code: string
  json(): unknown
}

/** @throws Error when the function itself fails */
export async function callHost(
  tenant: TestTenant,
  fn: string,
  as: string,
  what: string,
  ...parts: string[]
): Promise<HostResult> {
  const response = await tenant.request('POST', `/functions/v1/invoke/${fn}`, {
    as,
    body: [what, ...parts, '', ''].join(separator),
    headers: { 'content-type': 'text/plain' },
  })
  if (response.status !== 200 && response.status !== 299)
    throw new Error(`${what} ${parts.join(' ')}: ${response.status} ${response.text}`)
  const ok = response.status === 200
  return {
    ok,
    text: response.text,
    code: ok ? '' : String(response.json()['code']),
    json: (): unknown => JSON.parse(response.text),
  }
}
