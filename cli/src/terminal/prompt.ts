// Reads what a command needs from the user. Without a terminal it never waits for a user: it fails with the option to use.
import { createInterface } from 'node:readline'
import { addAbortSignal, Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { Interrupted, usageError } from './exit-codes.ts'
import type { Terminal } from './terminal.ts'

/**
 * Reads a line from the terminal.
 * @param hidden whether the typed text is not shown
 * @param instead what to do without a terminal, for the error
 * @throws CommandError without a terminal
 */
export async function prompt(
  terminal: Terminal,
  label: string,
  { hidden = false, instead }: { hidden?: boolean; instead: string },
): Promise<string> {
  if (!terminal.isInteractive) throw usageError(`There is no terminal to type "${label}" at. ${instead}`)
  let isShown = true
  const echo = new Writable({
    write(chunk: Buffer, _encoding, done) {
      if (isShown) terminal.stderr.write(chunk)
      done()
    },
  })
  const lines = createInterface({ input: terminal.stdin, output: echo, terminal: true, signal: terminal.signal })
  const typed = new Promise<string>((resolve, reject) => {
    lines.once('line', resolve)
    lines.once('SIGINT', () => reject(new Interrupted()))
    lines.once('close', () => reject(usageError(`No text was typed at "${label}".`)))
  })
  try {
    lines.setPrompt(`${label}: `)
    lines.prompt()
    isShown = !hidden
    return (await typed).trim()
  } finally {
    lines.close()
    if (hidden) terminal.stderr.write('\n')
  }
}

/** Reads all of standard input. @throws CommandError if it is a terminal */
export async function readStandardInput(terminal: Terminal, label: string): Promise<string> {
  if (terminal.stdin.isTTY === true)
    throw usageError(`Standard input is a terminal. Redirect ${label} to standard input.`)
  return text(addAbortSignal(terminal.signal, terminal.stdin))
}
