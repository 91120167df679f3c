// `completion` prints the script with which a shell completes the command.
import type { Command } from 'commander'
import { action } from '../call.ts'
import { usageError } from '../terminal/exit-codes.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { scripts } from './scripts.ts'

/** Adds `completion`. */
export function addCompletionCommand(program: Command, terminal: Terminal): void {
  program
    .command('completion <shell>')
    .description('print the completion script of a shell: bash, zsh or fish')
    .action(
      action(terminal, async (call, shell = '') => {
        const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined
        if (script === undefined)
          throw usageError(`Unknown shell "${shell.slice(0, 100)}". Allowed: ${Object.keys(scripts).join(', ')}.`)
        call.output.text(script)
      }),
    )
}
