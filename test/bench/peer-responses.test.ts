// Tests of the checks by which the benchmark of peers fails for a wrong response, and of the host that runs a command.
import { AssertionError } from 'node:assert'
import { test } from 'tap'
import { runCommand } from '#bench/support/peers/command-host.ts'
import { checkRows, operations, type Row } from '#bench/support/peers/rest-operations.ts'
import { event, greeting } from '#bench/support/peers/scene.ts'
import { compileFunction } from '#examples/functions/compile.ts'

const user = { id: 'user-1', token: '', rows: ['a'] }
const values = { title: 'new', done: true, rank: 3 }
const ours = { id: 'a', owner_id: 'user-1', ...values, created_at: '2026-01-01T00:01:00+00:00' }
const theirs = { id: 'a', ownerId: 'user-1', ...values, createdAt: '2026-01-01T00:01:00.000Z' }
const list = (row: Row) => Array.from({ length: operations.list.rows }, () => row)

test('the same row with the names and times of each service is accepted', async (t) => {
  const { get, list: listOperation, update, insert } = operations
  const row = { user, id: 'a' }
  t.doesNotThrow(() => checkRows(get, get.expected(row, undefined), ours, theirs))
  t.doesNotThrow(() => checkRows(listOperation, listOperation.expected(row, undefined), list(ours), list(theirs)))
  t.doesNotThrow(() => checkRows(update, update.expected(row, values), ours, theirs))
  t.doesNotThrow(() => checkRows(insert, insert.expected(row, values), ours, { ...theirs, id: 'b' }))
})

test('a response without the row of the request is not accepted', async (t) => {
  const { get, list: listOperation, update } = operations
  const row = { user, id: 'a' }
  const rejected = (work: () => void, what: string) => t.throws(work, AssertionError, what)
  rejected(
    () => checkRows(get, get.expected(row, undefined), { ...ours, id: 'b' }, { ...theirs, id: 'b' }),
    'another row',
  )
  rejected(
    () => checkRows(get, get.expected(row, undefined), ours, { ...theirs, rank: 4 }),
    "another value of the peer's",
  )
  rejected(() => checkRows(get, get.expected(row, undefined), ours, { error: 'NOT_FOUND' }), "an error of the peer's")
  rejected(
    () => checkRows(get, get.expected(row, undefined), { error: 'NOT_FOUND' }, { error: 'NOT_FOUND' }),
    'two errors',
  )
  rejected(
    () => checkRows(listOperation, listOperation.expected(row, undefined), [ours], [theirs]),
    'a list with too few rows',
  )
  rejected(
    () => checkRows(update, update.expected(row, { ...values, title: 'newer' }), ours, theirs),
    'a value that was not written',
  )
})

test('a command runs in a new instance for each request, with the environment of an invocation', async (t) => {
  const module = new WebAssembly.Module(await compileFunction('greet'))
  const run = (input: string) => new TextDecoder().decode(runCommand(module, new TextEncoder().encode(input)))
  t.equal(run(event), greeting)
  t.equal(run('{"name":"Ben"}'), greeting.replace('Ada', 'Ben'))
})
