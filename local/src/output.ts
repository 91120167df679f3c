// What `npm start` itself writes. Its reader may be slow, stand still or go away: none of these may stop the supervisor.
import pino, { type Logger } from 'pino'
import { prettyFactory } from 'pino-pretty'

/** Kept for a reader that stands still; what comes then is dropped and counted. */
const maxWaitingBytes = 4 * 1024 * 1024
/** The end of the process waits so long for the reader. */
const closeMilliseconds = 2_000

export interface Output {
  write(text: string): void
  /** Resolves when all is written, or the reader has had its time. */
  close(): Promise<void>
}

export function openOutput(descriptor: 1 | 2): Output {
  // Asynchronous: writing to a pipe that is full would otherwise hold up the whole process.
  const destination = pino.destination({ dest: descriptor, sync: false, maxLength: maxWaitingBytes })
  let dropped = 0
  destination.on('drop', () => dropped++)
  destination.on('drain', () => {
    if (dropped === 0) return
    const text = `${dropped} lines were dropped, because nobody read them in time\n`
    dropped = 0
    destination.write(text)
  })
  // A full disk or a reader that has gone; what is written later is tried again.
  destination.on('error', () => undefined)
  return {
    write: (text) => void destination.write(text),
    close: () =>
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

/** A log in words on a terminal, as JSON otherwise. */
export function openLog(output: Output, level: string, isTerminal: boolean): Logger {
  const settings = { level, base: null }
  if (!isTerminal) return pino(settings, { write: (line) => output.write(line) })
  const inWords = prettyFactory({ colorize: true, ignore: 'service', messageFormat: '{service} {msg}' })
  return pino(settings, { write: (line) => output.write(inWords(line)) })
}
