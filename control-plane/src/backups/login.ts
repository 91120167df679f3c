// Programs that log in to a home's Postgres over TCP, from inside its container.
export interface Login {
  role: string
  password: string
}

/** Runs a program of Postgres as that login. The password is the first line of what is read, so that it stands in no argument. */
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
