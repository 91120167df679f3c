// The tenant's keys, without their values: which exist, until when they are valid, and whether they are in use.
import { urlOf } from '../../api/client.ts'
import { useLoad } from '../../api/use-load.ts'
import { utc } from '../../format/times.ts'
import { Age, Badge, Card, ScreenTitle, Snippet } from '../../parts/basics.tsx'
import { Connect } from '../../parts/connect.tsx'
import { Empty, Load } from '../../parts/feedback.tsx'
import { Table } from '../../parts/table.tsx'
import { useSession } from '../session.ts'

interface Times {
  /** ISO 8601; null if it is not known. */
  created_at: string | null
  /** ISO 8601; null for a key that was not rotated. */
  expires_at: string | null
}

interface ApiKey extends Times {
  name: string
  kind: 'publishable' | 'secret'
  prefix: string | null
  last_used_at: string | null
}

interface KeysBody {
  keys: ApiKey[]
  /** ISO 8601; null where no runtime sees all uses. */
  uses_known_since: string | null
  jwt_secrets: (Times & { algorithm: string })[]
  public_keys: { kid: string; algorithm: string }[]
}

const purposes: Record<ApiKey['kind'], string> = {
  publishable: 'Apps and browsers. Its callers are anonymous until they also send a token of a user.',
  secret: "Servers only. It has the service role, which bypasses the users' policies.",
}

/** The screen of keys. */
export function KeysScreen() {
  const load = useLoad<KeysBody>('/keys/v1')
  const url = new URL(urlOf('/'), location.href).href.replace(/\/$/, '')
  return (
    <>
      <ScreenTitle title="Keys" note="What proves who sends a request. Values are shown once, when they are created" />
      <Load load={load} what="the keys">
        {(body) => (
          <>
            <Card title="API keys">
              <ApiKeys body={body} />
            </Card>
            <Card title="Tokens of your users">
              <TokenKeys body={body} />
            </Card>
          </>
        )}
      </Load>
      <Rotate />
      <Connect
        url={url}
        psql={{
          command: 'psql "$DATABASE_URL"',
          note: "DATABASE_URL is the tenant's database_url with its password. Your operator can replace the password.",
        }}
      />
    </>
  )
}

function ApiKeys({ body: { keys, uses_known_since: since } }: { body: KeysBody }) {
  return (
    <>
      <Table
        label="API keys"
        rows={keys}
        rowKey={({ kind, prefix, created_at: at }) => `${kind} ${prefix ?? ''} ${at ?? ''}`}
        columns={[
          { title: 'Name', isWhole: true, cell: ({ name }) => <strong>{name}</strong> },
          {
            title: 'Begins with',
            isWhole: true,
            cell: ({ prefix }) => (prefix === null ? '–' : <code>{prefix}…</code>),
          },
          { title: 'For', cell: ({ kind }) => purposes[kind] },
          { title: 'State', cell: ({ expires_at: at }) => <State expiresAt={at} /> },
          { title: 'Created', cell: ({ created_at: at }) => <Age at={at} /> },
          {
            title: 'Last used',
            cell: ({ last_used_at: at }) => <Age at={at} never={since === null ? 'unknown' : 'not seen'} />,
          },
        ]}
      />
      <p class="card-note">
        {since === null
          ? 'Several runtimes serve this tenant, so the last uses of its keys are not known.'
          : `Uses are known since ${utc(since)}, when the tenant's runtime started.`}
      </p>
    </>
  )
}

function State({ expiresAt }: { expiresAt: string | null }) {
  if (expiresAt === null) return <Badge text="valid" kind="good" />
  return (
    <>
      <Badge text="rotated" kind="warn" /> ends <Age at={expiresAt} />
    </>
  )
}

function TokenKeys({ body: { jwt_secrets: secrets, public_keys: publicKeys } }: { body: KeysBody }) {
  const rows = [
    ...secrets.map((secret, nth) => ({
      ...secret,
      id: `secret ${nth}`,
      name: <strong>jwt_secret</strong>,
      isPublic: false,
    })),
    ...publicKeys.map(({ kid, algorithm }) => ({
      algorithm,
      id: `key ${kid}`,
      name: <code>{kid}</code>,
      isPublic: true,
      created_at: null,
      expires_at: null,
    })),
  ]
  if (rows.length === 0) return <Empty title="No token is accepted." />
  return (
    <Table
      label="Keys of tokens"
      rows={rows}
      rowKey={({ id }) => id}
      columns={[
        { title: 'Name', cell: ({ name }) => name },
        { title: 'Kind', cell: ({ isPublic }) => (isPublic ? 'public key of your own service' : 'secret') },
        { title: 'Algorithm', cell: ({ algorithm }) => algorithm },
        { title: 'State', cell: ({ expires_at: at }) => <State expiresAt={at} /> },
        { title: 'Created', cell: ({ created_at: at }) => <Age at={at} /> },
      ]}
    />
  )
}

function Rotate() {
  const { tenant_name: name } = useSession()
  return (
    <Card title="Replace a key">
      <div class="prose">
        <p>
          Only your operator can create keys. Ask for a rotation of <code>publishable_key</code>,{' '}
          <code>secret_key</code> or <code>jwt_secret</code>: the operator gives you the new one, and both are valid
          during the overlap. Console sessions end together with the secret key with which they began.
        </p>
      </div>
      <Snippet
        title="What the operator runs, for an overlap of a day"
        code={`tenantry keys rotate-tenant ${name} --kind secret_key --overlap 86400`}
      />
    </Card>
  )
}
