// The output of `npm start` itself. A slow, blocked or closed reader must not block the supervisor.
import { errorSerializer } from '@tenantry/contract'
import pino, { type Logger } from 'pino'
import { prettyFactory } from 'pino-pretty'

/** Bytes that are buffered for a blocked reader. Later lines are dropped and counted. */
const maxBufferedBytes = 4 * 1024 * 1024
/** Time limit for the reader at the end of the process. */
const closeMilliseconds = 2_000

/** The output of the supervisor. */
export type Output = ReturnType<typeof openOutput>

export function openOutput(descriptor: 1 | 2) {
  // Asynchronous, because a write to a full pipe would otherwise block the whole process.
  const destination = pino.destination({ dest: descriptor, sync: false, maxLength: maxBufferedBytes })
  let dropped = 0
  destination.on('drop', () => dropped++)
  destination.on('drain', () => {
    if (dropped === 0) return
    const text = `${dropped} lines were dropped, because they were not read in time.\n`
    dropped = 0
    destination.write(text)
  })
  // A full disk or a closed reader. Later writes try again.
  destination.on('error', () => undefined)
  return {
    write: (text: string): void => void destination.write(text),
    /** Resolves when everything is written, or after the time limit. */
    close: (): Promise<void> =>
      new Promise((resolve) => {
        const done = () => {
          clearTimeout(timer)
          destination.destroy()
          resolve()
        }
        const timer = setTimeout(done, closeMilliseconds)
        destination.once('close', done)
        destination.end()
      }),
  }
}

/** Opens a log: formatted for a terminal, as JSON otherwise. */
export function openLog(output: Output, level: string, isTerminal: boolean): Logger {
  const settings = { level, base: null, serializers: { err: errorSerializer(pino.stdSerializers.err) } }
  if (!isTerminal) return pino(settings, { write: (line) => output.write(line) })
  const formatLine = prettyFactory({ colorize: true, ignore: 'service', messageFormat: '{service} {msg}' })
  return pino(settings, { write: (line) => output.write(formatLine(line)) })
}
