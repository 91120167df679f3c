// Platform keys: create, rotate, revoke. Their values are never shown.
import { useState } from 'preact/hooks'
import { call } from '../api/client.ts'
import type { PlatformKey, Scope } from '../api/types.ts'
import { useLoad } from '../api/use-load.ts'
import { useNow } from '../format/times.ts'
import { Age, Badge, Card, ScreenTitle } from '../parts/basics.tsx'
import { Confirm } from '../parts/confirm.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Load } from '../parts/feedback.tsx'
import { fieldError, Form, SelectField, TextField, useAction } from '../parts/form.tsx'
import { Secrets } from '../parts/secrets.tsx'
import { Table } from '../parts/table.tsx'
import { useSession } from '../session.ts'

type KeyWithText = PlatformKey & { key: string }
type Open = { is: 'create' } | { is: 'revoke' | 'rotate'; key: PlatformKey } | { is: 'created'; key: KeyWithText }

const scopes: [Scope, string][] = [
  ['admin', 'admin: everything'],
  ['read', 'read: everything except keys and the audit log'],
  ['billing', 'billing: tenants, usage and invoices'],
]

/** The screen of platform keys. */
export function KeysScreen() {
  const keys = useLoad<{ keys: PlatformKey[] }>('/v1/keys')
  const now = useNow()
  const [shown, setShown] = useState<Open | undefined>(undefined)
  const close = () => setShown(undefined)
  const stateOf = ({ revoked_at: revoked, expires_at: expires, replaced_by: successor }: PlatformKey) => {
    if (revoked !== null) return <Badge text="revoked" kind="quiet" />
    if (expires !== null && Date.parse(expires) <= now) return <Badge text="expired" kind="quiet" />
    return successor === null ? <Badge text="valid" kind="good" /> : <Badge text="rotated" kind="warn" />
  }
  const isLive = ({ revoked_at: revoked, expires_at: expires }: PlatformKey) =>
    revoked === null && (expires === null || Date.parse(expires) > now)
  const create = (key: KeyWithText) => {
    keys.reload()
    setShown({ is: 'created', key })
  }
  return (
    <>
      <ScreenTitle title="Platform keys" note="With these keys, operators, billing jobs and this console use the API">
        <button type="button" class="button primary" onClick={() => setShown({ is: 'create' })}>
          Create a key
        </button>
      </ScreenTitle>
      {shown?.is === 'create' && <CreateKey onClose={close} onCreated={create} />}
      {shown?.is === 'created' && (
        <Secrets
          title={`The key ${shown.key.name} was created`}
          file={`platform-key-${shown.key.name.replaceAll(/[^\w-]+/g, '-')}`}
          secrets={{ platform_key: shown.key.key }}
          onClose={close}
        />
      )}
      {shown?.is === 'revoke' && (
        <Confirm
          title="Revoke the key"
          submit={['Revoke the key', 'Revoking …']}
          kind="danger"
          typed={shown.key.prefix}
          onClose={close}
          onConfirm={async () => {
            await call('DELETE', `/v1/keys/${encodeURIComponent(shown.key.id)}`)
            keys.reload()
          }}
        >
          <p>
            <strong>{shown.key.name}</strong> (<code>{shown.key.prefix}…</code>) ends at once, and so do the console
            sessions that were opened with it.
          </p>
        </Confirm>
      )}
      {shown?.is === 'rotate' && <RotateKey rotated={shown.key} onClose={close} onCreated={create} />}
      <Card>
        <Load load={keys} what="keys">
          {({ keys: all }) => (
            <Table
              label="Platform keys"
              rows={all}
              rowKey={({ id }) => id}
              columns={[
                { title: 'Name', cell: ({ name }) => <strong>{name}</strong> },
                { title: 'Begins with', cell: ({ prefix }) => <code>{prefix}…</code> },
                { title: 'Scope', cell: ({ scope }) => scope },
                { title: 'State', cell: stateOf },
                { title: 'Created', cell: ({ created_at: at }) => <Age at={at} /> },
                { title: 'Expires', cell: ({ expires_at: at }) => <Age at={at} never="never" /> },
                {
                  title: 'Actions',
                  cell: (key) =>
                    isLive(key) ? (
                      <span class="row-actions">
                        {key.replaced_by === null && (
                          <button type="button" class="button small" onClick={() => setShown({ is: 'rotate', key })}>
                            Rotate
                          </button>
                        )}
                        <button type="button" class="button small" onClick={() => setShown({ is: 'revoke', key })}>
                          Revoke
                        </button>
                      </span>
                    ) : (
                      <span class="dim">–</span>
                    ),
                },
              ]}
            />
          )}
        </Load>
      </Card>
    </>
  )
}

function CreateKey({ onClose, onCreated }: { onClose: () => void; onCreated: (key: KeyWithText) => void }) {
  const action = useAction()
  const [name, setName] = useState('')
  const [scope, setScope] = useState<string>('read')
  const { tenant_id: tenantId, region } = useSession()
  // A limited key creates keys with its own limit only.
  const limit = { ...(tenantId === null ? {} : { tenant_id: tenantId }), ...(region === null ? {} : { region }) }
  return (
    <Dialog title="Create a platform key" onClose={onClose}>
      <Form
        action={action}
        submit={['Create the key', 'Creating …']}
        onCancel={onClose}
        fields={['name']}
        onSubmit={async () =>
          onCreated((await call<KeyWithText>('POST', '/v1/keys', { body: { name, scope, ...limit } })).body)
        }
      >
        <TextField
          label="Name"
          value={name}
          onInput={setName}
          isRequired
          hint="The person or program that uses it."
          error={fieldError(action.error, 'name')}
        />
        <SelectField label="Scope" value={scope} onInput={setScope} options={scopes} />
      </Form>
    </Dialog>
  )
}

interface RotateKeyProps {
  rotated: PlatformKey
  onClose: () => void
  onCreated: (key: KeyWithText) => void
}

function RotateKey({ rotated, onClose, onCreated }: RotateKeyProps) {
  const action = useAction()
  const [overlap, setOverlap] = useState('86400')
  return (
    <Dialog title="Rotate the key" onClose={onClose}>
      <Form
        action={action}
        submit={['Rotate the key', 'Rotating …']}
        onCancel={onClose}
        fields={['overlap_seconds']}
        onSubmit={async () => {
          const path = `/v1/keys/${encodeURIComponent(rotated.id)}/rotate`
          onCreated((await call<KeyWithText>('POST', path, { body: { overlap_seconds: Number(overlap) } })).body)
        }}
      >
        <div class="prose">
          <p>
            A new key replaces <strong>{rotated.name}</strong>. Both are valid until the overlap ends.
          </p>
        </div>
        <SelectField
          label="The old key stays valid for"
          value={overlap}
          onInput={setOverlap}
          options={[
            ['0', 'no time: it ends at once'],
            ['3600', 'an hour'],
            ['86400', 'a day'],
            ['604800', 'a week'],
            ['2592000', '30 days'],
          ]}
          error={fieldError(action.error, 'overlap_seconds')}
        />
      </Form>
    </Dialog>
  )
}
