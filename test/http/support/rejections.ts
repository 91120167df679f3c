// Calls that are rejected, each with its status, its code and what the message names.
import type { Test } from 'tap'
import { isError, newName, type CallOptions, type TestApi } from '#test/support/control-plane/api.ts'

export type Case = [
  what: string,
  method: string,
  path: string,
  request: CallOptions,
  status: number,
  code: string,
  names: string,
]

/** Sends each call. Then the control database must have as many rows as before, and the audit log no new entry. */
export const rejectedBy =
  (api: TestApi) =>
  async (t: Test, cases: Case[]): Promise<void> => {
    const before = await api.counts()
    for (const [what, method, path, options, status, code, names] of cases) {
      isError(t, await api.call(method, path, options), status, code, names, what)
    }
    t.same(await api.counts(), before, 'nothing was created')
  }

export const good = () => ({ name: newName(), plan: 'Free', region: 'local' })
