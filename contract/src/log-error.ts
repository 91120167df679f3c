// How the logs of all parts write an error that has causes.

/**
 * Returns pino's serializer of errors with another `message`: the messages of the error and of its causes in one line, such
 * as `The database does not respond: the database system is starting up`. Pino itself would write `respond.: the`.
 * @param serialize pino's `stdSerializers.err`
 */
export function errorSerializer<T extends { message: string }>(serialize: (error: Error) => T): (error: Error) => T {
  return (error) => {
    const serialized = serialize(error)
    if (error instanceof Error) serialized.message = messageWithCauses(error)
    return serialized
  }
}

function messageWithCauses(error: Error): string {
  const messages: string[] = []
  const seen = new Set<unknown>()
  for (let next: unknown = error; next instanceof Error && !seen.has(next); next = next.cause) {
    seen.add(next)
    if (next.message !== '') messages.push(next.message)
  }
  return messages.map((text, n) => (n === messages.length - 1 ? text : text.replace(/(?<!\.)\.$/, ''))).join(': ')
}
