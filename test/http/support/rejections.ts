// Calls that are refused, each with the status, the code and what the message names.
import type { Test } from 'tap'
import { isError, newName, type Requested, type TestApi } from '#test/support/control-plane/api.ts'

export type Case = [
  what: string,
  method: string,
  path: string,
  asked: Requested,
  status: number,
  code: string,
  names: string,
]

/** Each is sent; then the control database must hold as many rows as before, and the audit log say nothing new. */
export const rejectedBy =
  (api: TestApi) =>
  async (t: Test, cases: Case[]): Promise<void> => {
    const before = await api.counts()
    for (const [what, method, path, requested, status, code, names] of cases) {
      isError(t, await api.call(method, path, requested), status, code, names, what)
    }
    t.same(await api.counts(), before, 'nothing was made')
  }

export const good = () => ({ name: newName(), plan: 'Free', region: 'local' })
