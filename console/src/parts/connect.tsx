// Connection snippets. They name the keys, and never contain their values.
import { useState } from 'preact/hooks'
import { Card, Snippet } from './basics.tsx'

const clients = ['supabase-js', 'curl', 'psql'] as const
type Client = (typeof clients)[number]

interface ConnectProps {
  /** The tenant's URL. */
  url: string
  /** The command that connects with psql, and what it needs. */
  psql: { command: string; note: string }
}

function snippetOf(client: Client, { url, psql }: ConnectProps): string {
  switch (client) {
    case 'supabase-js':
      return [
        `import { createClient } from '@supabase/supabase-js'`,
        '',
        `const client = createClient('${url}', process.env.PUBLISHABLE_KEY)`,
        `const { data, error } = await client.from('notes').select()`,
      ].join('\n')
    case 'curl':
      return [`curl -s ${url}/storage/v1/bucket \\`, `  -H "Authorization: Bearer $SECRET_KEY"`].join('\n')
    case 'psql':
      return psql.command
  }
}

const notes: Record<Exclude<Client, 'psql'>, string> = {
  'supabase-js': "PUBLISHABLE_KEY is the tenant's publishable_key. Users sign in with tokens of your own service.",
  curl: "SECRET_KEY is the tenant's secret_key. It bypasses the users' policies: only servers may have it.",
}

/** How a developer connects to the tenant. */
export function Connect(props: ConnectProps) {
  const [client, setClient] = useState<Client>('supabase-js')
  return (
    <Card
      title="Connect"
      actions={
        <fieldset class="segmented">
          <legend class="hidden-text">Client</legend>
          {clients.map((one) => (
            <label key={one}>
              <input type="radio" name="client" checked={one === client} onInput={() => setClient(one)} />
              <span>{one}</span>
            </label>
          ))}
        </fieldset>
      }
    >
      <Snippet title={`Connect with ${client}`} code={snippetOf(client, props)} />
      <p class="dim">{client === 'psql' ? props.psql.note : notes[client]}</p>
    </Card>
  )
}
