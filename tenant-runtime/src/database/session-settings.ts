// The settings that a session begins with. A tenant's code can give its login other defaults with ALTER ROLE, for example
// another role, search path or time limit. Settings in the startup packet take precedence over those, and RESET returns to
// them. Pure.

/** Settings that the statements of this runtime rely on, and those that limit what a session uses. */
const everySession = {
  row_security: 'on',
  standard_conforming_strings: 'on',
  bytea_output: 'hex',
  extra_float_digits: '1',
  intervalstyle: 'postgres',
  datestyle: 'ISO',
  timezone: 'UTC',
  client_min_messages: 'notice',
  default_transaction_isolation: 'read committed',
  default_transaction_read_only: 'off',
  default_transaction_deferrable: 'off',
  synchronous_commit: 'on',
  check_function_bodies: 'on',
  work_mem: '4MB',
  idle_session_timeout: '0',
  transaction_timeout: '0',
  debug_print_parse: 'off',
  debug_print_rewritten: 'off',
  debug_print_plan: 'off',
}

interface SessionRole {
  /** The schema of the home. */
  schema: string
  /** The role in which the session works; `none` is the login itself. */
  role: string
}

/** Returns the `options` of a startup packet. @param settings further settings of this session */
export function sessionOptions({ schema, role }: SessionRole, settings: Readonly<Record<string, string>>): string {
  return Object.entries({ ...everySession, search_path: schema, role, ...settings })
    .map(([name, value]) => `-c ${name}=${value.replaceAll(' ', '\\ ')}`)
    .join(' ')
}
