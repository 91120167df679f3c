// One bash session that runs the blocks of a page in order, so that a later block sees the variables of an earlier one.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

export interface ShellSession {
  /** Runs a block to its end. @throws Error with the output when a command of it fails */
  run(block: string): Promise<string>
  /** Runs a block that does not end by itself until its output contains `text`; `meanwhile` is called at its first line. */
  follow(block: string, text: string, meanwhile: () => Promise<void>): Promise<string>
}

/** The documentation's curl prints an error's body and exits with 0; here, a status of 400 or more fails the block. */
const prologue = `
set -euo pipefail
curl() { command curl --fail-with-body --no-progress-meter "$@"; }
`

export function openShell(directory: string, variables: Record<string, string>): ShellSession {
  const environment = { PATH: process.env['PATH'] ?? '', HOME: directory, ...variables }
  const script: string[] = [prologue]

  const start = (block: string) => {
    const shell = spawn('bash', ['-c', `${script.join('\n')}\nprintf '\\036\\n'\n${block}`], {
      cwd: directory,
      env: environment,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let errors = ''
    shell.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
    const ended = new Promise<number | null>((resolve) => shell.once('close', resolve))
    return { shell, ended, errors: () => errors }
  }

  return {
    async run(block) {
      // Variables keep their values in later blocks. No command runs twice.
      const names = [...block.matchAll(/^(?:export )?([A-Z_]+)=/gm)].map(([, name]) => name)
      const values = names.length === 0 ? '' : `declare -p ${names.join(' ')} 2> /dev/null || true`
      const { shell, ended, errors } = start(`${block}\nprintf '\\036\\n'\n${values}`)
      let output = ''
      shell.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
      const code = await ended
      const [, own = '', assignments = ''] = output.split('\u001e\n')
      if (code !== 0) throw new Error(`the block ended with ${String(code)}:\n${block}\n${own}\n${errors()}`)
      script.push(assignments)
      return own
    },
    async follow(block, text, meanwhile) {
      const { shell, ended, errors } = start(block)
      let output = ''
      let begun: Promise<void> | undefined
      for await (const line of createInterface({ input: shell.stdout })) {
        if (line !== '\u001e') {
          output += `${line}\n`
          begun ??= meanwhile()
        }
        if (output.includes(text)) break
      }
      await begun
      if (shell.pid !== undefined && shell.exitCode === null) process.kill(-shell.pid, 'SIGKILL')
      await ended
      if (!output.includes(text))
        throw new Error(`the block ended without ${JSON.stringify(text)}:\n${block}\n${output}\n${errors()}`)
      return output
    },
  }
}
