// Reads the operator's settings of the control planes. Pure.
import { ConfigurationError, controlPlaneSettings } from '@tenantry/contract'

const file = 'control-plane.env'

/**
 * Reads settings, `NAME=value` in each line. Empty lines and comments are skipped.
 * @param own names of the settings that `deploy/setup` itself passes to the control planes
 * @throws ConfigurationError with the number of a line that is not a setting of the operator
 */
export function readSettings(text: string, own: readonly string[]): Record<string, string> {
  const lines = text.split('\n').map((line, at) => ({ line: line.trim(), number: at + 1 }))
  return Object.fromEntries(
    lines
      .filter(({ line }) => line !== '' && !line.startsWith('#'))
      .map(({ line, number }) => readSetting(line, `Line ${number} of ${file}`, own)),
  )
}

function readSetting(line: string, where: string, own: readonly string[]): [name: string, value: string] {
  const [, name = '', value = ''] = /^([A-Z][A-Z0-9_]*)=(|\S.*)$/.exec(line) ?? []
  // The line may contain a secret, so that the error does not.
  if (name === '') throw new ConfigurationError(`${where} is not NAME=value, without spaces around the equals sign.`)
  if (/^(["']).*\1$/.test(value))
    throw new ConfigurationError(`${where}: the value of ${name} is in quotes. They would be part of it: remove them.`)
  if (own.includes(name)) throw new ConfigurationError(`${where}: deploy/setup itself sets ${name}. Remove the line.`)
  if (!Object.hasOwn(controlPlaneSettings, name))
    throw new ConfigurationError(`${where}: the control plane has no setting ${name.slice(0, 100)}.`)
  return [name, value]
}
