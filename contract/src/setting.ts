// What the settings of several parts have in common.

/** One setting: an environment variable that a part reads. */
export interface Setting {
  /** Meaning of the value, in Markdown, for the table in docs/operate/configuration.md. */
  description: string
  /** Default in the same table; undefined if the part does not start without the setting, or needs no value. */
  fallback?: string
  /**
   * Origin of the value. `operator`: people set it, and `npm start` passes it on. `launcher`: the program that starts
   * the part sets it to match the other parts, as `npm start`, Compose and the control plane's stacks do.
   */
  setBy: 'operator' | 'launcher'
  /** Option of `npm start` that determines the value. */
  startOption?: string
  /** Whether the value is a path, which `npm start` makes absolute, because the parts run in another directory. */
  isPath?: true
}

/** Settings of a part by the names of their environment variables. */
export type Settings<Name extends string = string> = Readonly<Record<Name, Setting>>

/** The level of the log. */
export const logLevel: Setting = {
  description: '`fatal`, `error`, `warn`, `info`, `debug`, `trace` or `silent`',
  fallback: '`info`',
  setBy: 'launcher',
  startOption: '--log-level',
}
/** The token between the parts. */
export const internalToken: Setting = {
  description:
    'file with the token between the parts; [others](secrets.md#the-internal-token) may follow, one in a line',
  setBy: 'launcher',
  isPath: true,
}
/** The number of requested restarts. */
export const restarts: Setting = {
  description: 'number of requested restarts; a change of it replaces the container',
  fallback: 'none',
  setBy: 'launcher',
}
/** The URL of the control plane. */
export const controlUrl: Setting = {
  description: 'URL of the control plane, or of a gateway that relays to it',
  setBy: 'launcher',
}
