// Tests of the collection of error messages from sources.
import { test } from 'tap'
import { collectMessages } from '#scripts/messages/collect-messages.ts'

const errors = `
export const errorKinds = { BAD: { status: 400, tag: 'bad' }, GONE: { status: 404, tag: 'gone' } }
export class PartError extends Error {
  constructor(code: string, message: string) { super(message) }
}
export class Missing extends PartError {
  constructor(name: string) { super('GONE', \`No \${name}.\`) }
}
export function invalid(field: string, text: string): PartError {
  return new PartError('BAD', \`Invalid \${field}: \${text}.\`)
}
`

test('the collection contains messages with status and code, and names the inserted values', async (t) => {
  // oxlint-disable-next-line no-template-curly-in-string -- the string is source code
  t.same(messages("throw new PartError('BAD', `Too long: ${body.bytes} of ${String(maxBytes)} bytes.`)"), [
    '400 BAD: Too long: {bytes} of {maxBytes} bytes.',
  ])
})

test('the collection contains the messages that functions create, in their own file and in others', async (t) => {
  const source = `
    import { invalid as wrong } from './errors.ts'
    const short = (field: string) => wrong(field, 'too short')
    throw short('name')
    throw wrong('plan', isNew ? 'unknown' : 'retired')
  `
  t.same(messages(source), [
    '400 BAD: Invalid name: too short.',
    '400 BAD: Invalid plan: retired.',
    '400 BAD: Invalid plan: unknown.',
  ])
})

test('the collection contains messages of constructors, constants, and objects with code and message', async (t) => {
  const source = `
    const text = 'Closed.'
    throw new Error(text)
    throw new Missing('lease')
    const shown = { status: 503, code: 'BUSY', message: 'Try later.' }
  `
  t.same(messages(source), ['503 BUSY: Try later.', 'Error: Closed.', 'Missing: No lease.'])
})

test('the collection omits errors that only pass a text on', async (t) => {
  t.same(messages('throw new Error(cause.message)'), [])
})

/** Returns the messages of a source, without those of the file of errors that it imports. */
function messages(source: string): string[] {
  const own = new Set(collectMessages([{ file: 'part/errors.ts', source: errors }]))
  const all = collectMessages([
    { file: 'part/errors.ts', source: errors },
    { file: 'part/used.ts', source },
  ])
  return all.filter((line) => !own.has(line))
}
