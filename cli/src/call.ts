// One call of a command: its options, its output and its connections. Commands get everything that they use from here.
import { resolve } from 'node:path'
import { createControlClient, type ControlClient } from '@tenantry/client'
import type { Command } from 'commander'
import { configPath, readConfig, type Config } from './connection/config-file.ts'
import { checkedKey, findContext, findLink } from './connection/connection.ts'
import { TenantClient } from './tenant/tenant-client.ts'
import { usageError } from './terminal/exit-codes.ts'
import { Output } from './terminal/output.ts'
import type { Terminal } from './terminal/terminal.ts'

/** One call of a command. */
export class Call {
  /** The process that the command runs in. */
  readonly terminal: Terminal
  /** The output of the command. */
  readonly output: Output
  readonly #options: Readonly<Record<string, unknown>>

  constructor(terminal: Terminal, options: Readonly<Record<string, unknown>>) {
    this.terminal = terminal
    this.#options = options
    this.output = new Output(terminal, { json: this.isSet('json'), quiet: this.isSet('quiet') })
  }

  /** Returns whether an option without a value is set. */
  isSet(name: string): boolean {
    return this.#options[name] === true
  }

  /** Returns whether an option is switched off with its `--no-` form. */
  isOff(name: string): boolean {
    return this.#options[name] === false
  }

  /** Returns the value of an option; undefined if it is not set. */
  text(name: string): string | undefined {
    const value = this.#options[name]
    return typeof value === 'string' ? value : undefined
  }

  /** Returns the values of an option that may be repeated. */
  texts(name: string): readonly string[] {
    const value = this.#options[name]
    return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
  }

  /** Returns the value of an option as a whole number. @throws CommandError if it is not one in the range */
  integer(name: string, min: number, max: number): number | undefined {
    const text = this.text(name)
    if (text === undefined) return undefined
    const value = Number(text)
    if (!/^\d{1,16}$/.test(text) || value < min || value > max)
      throw usageError(
        `Invalid value "${text.slice(0, 100)}" of --${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}. ` +
          `Allowed: ${min} to ${max}.`,
      )
    return value
  }

  /** Returns the absolute form of a path. */
  path(path: string): string {
    return resolve(this.terminal.directory, path)
  }

  /** Path of the file with the contexts. */
  get configPath(): string {
    return configPath(this.terminal.env)
  }

  /** Reads the stored contexts and links. */
  config(): Promise<Config> {
    return readConfig(this.configPath)
  }

  /**
   * Returns a client of the control plane.
   * @param timeoutMs Infinity for a response that is followed
   * @throws CommandError if no installation is known
   */
  async control(timeoutMs?: number): Promise<ControlClient> {
    const { target } = await findContext(await this.config(), this.terminal.env, this.text('context'))
    return this.clientOf(target, timeoutMs)
  }

  /** Returns a client of a control plane with this address and key. Ctrl-C ends its requests. */
  clientOf({ url, key }: { url: string; key: string }, timeoutMs?: number): ControlClient {
    return createControlClient({
      url,
      key: checkedKey(key),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      fetch: (request) =>
        fetch(new Request(request, { signal: AbortSignal.any([request.signal, this.terminal.signal]) })),
    })
  }

  /** Returns a client of the tenant that the developer has linked. @throws CommandError if no tenant is known */
  async tenant(): Promise<TenantClient> {
    const { target } = findLink(await this.config(), this.terminal.env, this.text('link'))
    return new TenantClient(target.url, target.secret_key, this.terminal.signal)
  }
}

/** Work of a command with its arguments. An optional argument that is missing is undefined. */
export type Run = (call: Call, ...values: string[]) => Promise<void>

/** Returns what commander calls for a command. */
export function action(terminal: Terminal, run: Run): (...values: unknown[]) => Promise<void> {
  return async (...values) => {
    const command = values.at(-1) as Command
    const given = command.processedArgs.flatMap((one: unknown) =>
      Array.isArray(one) ? (one as string[]) : [one as string],
    )
    await run(new Call(terminal, command.optsWithGlobals<Record<string, unknown>>()), ...given)
  }
}
