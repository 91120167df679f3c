import pino from 'pino'
import t from 'tap'
import { errorSerializer } from '#contract/log-error.ts'

/** Returns the field `err` of a log line with this error. */
function logged(error: unknown): { type?: string; message?: string; stack?: string; code?: string } {
  let line = ''
  const serializers = { err: errorSerializer(pino.stdSerializers.err) }
  pino({ serializers }, { write: (text) => (line = text) }).warn({ err: error }, 'A check failed.')
  return (JSON.parse(line) as { err: ReturnType<typeof logged> }).err
}

t.test('The messages of an error and of its causes form one line', (t) => {
  const cause = new Error('The server does not respond.', { cause: new Error('connect ECONNREFUSED 127.0.0.1:5432') })
  const error = Object.assign(new TypeError('The database does not respond.', { cause }), { code: 'DOWN' })
  t.match(logged(error), {
    type: 'TypeError',
    message: 'The database does not respond: The server does not respond: connect ECONNREFUSED 127.0.0.1:5432',
    stack: /TypeError: The database does not respond\.\n[^]*caused by: Error: The server/,
    code: 'DOWN',
  })
  t.end()
})

t.test('The last message keeps its full stop, and an ellipsis is not shortened', (t) => {
  t.equal(logged(new Error('The home is damaged.')).message, 'The home is damaged.')
  t.equal(logged(new Error('Waiting ...', { cause: new Error('It ended.') })).message, 'Waiting ...: It ended.')
  t.end()
})

t.test('Causes without a message, circular causes and other values are accepted', (t) => {
  t.equal(logged(new Error('The call failed.', { cause: new AggregateError([]) })).message, 'The call failed.')
  t.equal(logged(new Error('The call failed.', { cause: 'closed' })).message, 'The call failed.')
  const circular = new Error('The call failed.')
  circular.cause = new Error('It was closed.', { cause: circular })
  t.equal(logged(circular).message, 'The call failed: It was closed.')
  t.same(logged('closed'), 'closed')
  t.end()
})
