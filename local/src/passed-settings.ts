// Passes the settings of the environment on to the parts: all that operators may set. Others are an error.
import { stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import {
  ConfigurationError,
  controlPlaneSettings,
  gatewaySettings,
  rejectUnknownSettings,
  runtimeSettings,
  settingsIn,
  type Settings,
} from '@tenantry/contract'

const parts = {
  controlPlane: controlPlaneSettings,
  gateway: gatewaySettings,
  runtime: runtimeSettings,
} satisfies Record<string, Settings>

/** Settings for the environment of each part. */
export type PassedSettings = Record<keyof typeof parts, Record<string, string>>

/**
 * Divides the settings of an environment among the parts. Paths become absolute: the parts run in another directory.
 * @throws ConfigurationError for a name that no part has, and for one that `npm start` sets itself
 */
export function passedSettings(variables: Readonly<Record<string, string | undefined>>, cwd: string): PassedSettings {
  const all: readonly Settings[] = Object.values(parts)
  rejectUnknownSettings(
    all.flatMap((settings) => Object.keys(settings)),
    variables,
  )
  const names = settingsIn(variables)
  const own = names.find((name) => !all.some((settings) => settings[name]?.setBy === 'operator'))
  if (own !== undefined) {
    const option = all.map((settings) => settings[own]?.startOption).find((named) => named !== undefined)
    const remedy = option === undefined ? 'Remove it from the environment.' : `Use npm start -- ${option} instead.`
    throw new ConfigurationError(`npm start sets ${own} itself. ${remedy}`)
  }
  const passed = (settings: Settings) =>
    Object.fromEntries(
      names.flatMap((name) => {
        const setting = settings[name]
        const value = variables[name] ?? ''
        return setting?.setBy === 'operator' ? [[name, setting.isPath === true ? resolve(cwd, value) : value]] : []
      }),
    )
  return { controlPlane: passed(parts.controlPlane), gateway: passed(parts.gateway), runtime: passed(parts.runtime) }
}

/** Returns the existing directories that each part reads or writes because of its settings. */
export async function directoriesOf(passed: PassedSettings): Promise<Record<keyof PassedSettings, string[]>> {
  const [controlPlane, gateway, runtime] = await Promise.all([
    existingDirectories(parts.controlPlane, passed.controlPlane),
    existingDirectories(parts.gateway, passed.gateway),
    existingDirectories(parts.runtime, passed.runtime),
  ])
  return { controlPlane, gateway, runtime }
}

async function existingDirectories(settings: Settings, values: Record<string, string>): Promise<string[]> {
  const named = Object.entries(values).flatMap(([name, path]) =>
    settings[name]?.isPath !== true ? [] : [name.endsWith('_FILE') ? dirname(path) : path],
  )
  const existing = await Promise.all(
    named.map((path) =>
      stat(path).then(
        (found) => found.isDirectory(),
        () => false,
      ),
    ),
  )
  return [...new Set(named.filter((_, index) => existing[index] === true))]
}
