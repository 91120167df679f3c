// Runs programs that log in to a home's Postgres over TCP, from inside its container.
export interface Login {
  role: string
  password: string
}

/**
 * Returns the command that runs a Postgres program as that login. The password is the first line of its input, so that
 * it is in no argument.
 */
export function loggedIn({ role }: Login, [program = '', ...parameters]: readonly string[]): string[] {
  return [
    'sh',
    '-c',
    'IFS= read -r PGPASSWORD && export PGPASSWORD && exec "$@"',
    'sh',
    program,
    '-h',
    '127.0.0.1',
    '-U',
    role,
    ...parameters,
  ]
}
