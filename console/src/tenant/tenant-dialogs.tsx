// The dialogs of a tenant's actions: suspend, rotate keys, delete.
import { useState } from 'preact/hooks'
import { call } from '../api/client.ts'
import type { Tenant, TenantKeys } from '../api/types.ts'
import { Confirm } from '../parts/confirm.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { fieldError, Form, SelectField, TextField, useAction } from '../parts/form.tsx'
import { Secrets } from '../parts/secrets.tsx'

export type DialogName = 'suspend' | 'rotate' | 'delete'

interface DialogProps {
  tenant: Tenant
  onDone: () => void
  onClose: () => void
}

/** One of the dialogs. */
export function TenantDialog({ name, ...props }: DialogProps & { name: DialogName }) {
  switch (name) {
    case 'suspend':
      return <Suspend {...props} />
    case 'rotate':
      return <Rotate {...props} />
    case 'delete':
      return <Delete {...props} />
  }
}

const pathOf = ({ tenant_id: id }: Tenant) => `/v1/tenants/${encodeURIComponent(id)}`

function Suspend({ tenant, onDone, onClose }: DialogProps) {
  const action = useAction()
  const [reason, setReason] = useState('')
  const [needsPayment, setNeedsPayment] = useState(false)
  return (
    <Dialog title={`Suspend ${tenant.name}`} onClose={onClose}>
      <Form
        action={action}
        submit={['Suspend the tenant', 'Suspending …']}
        kind="danger"
        onCancel={onClose}
        fields={['suspend_reason']}
        onSubmit={async () => {
          const body = {
            suspended: true,
            ...(reason === '' ? {} : { suspend_reason: reason }),
            payment_required: needsPayment,
          }
          await call('PATCH', pathOf(tenant), { body })
          onDone()
          onClose()
        }}
      >
        <div class="prose">
          <p>Every gateway rejects its requests, and its SQL login is closed. Its data stays.</p>
        </div>
        <TextField
          label="Reason"
          value={reason}
          onInput={setReason}
          hint="Public: the gateway shows it to the tenant's users. It may be empty."
          error={fieldError(action.error, 'suspend_reason')}
        />
        <label class="check">
          <input
            type="checkbox"
            checked={needsPayment}
            onInput={(event) => setNeedsPayment(event.currentTarget.checked)}
          />
          <span>Paying ends the suspension (responses have the status 402)</span>
        </label>
      </Form>
    </Dialog>
  )
}

const kinds = ['publishable_key', 'secret_key', 'jwt_secret'] as const

function Rotate({ tenant, onDone, onClose }: DialogProps) {
  const action = useAction()
  const [selected, setSelected] = useState<readonly string[]>(kinds)
  const [overlap, setOverlap] = useState('3600')
  const [keys, setKeys] = useState<Partial<TenantKeys> | undefined>(undefined)
  if (keys !== undefined)
    return (
      <Secrets
        title={`New keys of ${tenant.name}`}
        file={`${tenant.name}-keys`}
        secrets={Object.fromEntries(Object.entries(keys).map(([name, value]) => [name, value]))}
        onClose={onClose}
      />
    )
  return (
    <Dialog title={`Rotate the keys of ${tenant.name}`} onClose={onClose}>
      <Form
        action={action}
        submit={['Rotate the keys', 'Rotating …']}
        onCancel={onClose}
        isDisabled={selected.length === 0}
        onSubmit={async () => {
          const { body } = await call<{ keys: Partial<TenantKeys> }>('POST', `${pathOf(tenant)}/keys/rotate`, {
            body: { kinds: selected, overlap_seconds: Number(overlap) },
          })
          onDone()
          setKeys(body.keys)
        }}
      >
        <fieldset class="checks">
          <legend>Keys to replace</legend>
          {kinds.map((kind) => (
            <label key={kind} class="check">
              <input
                type="checkbox"
                checked={selected.includes(kind)}
                onInput={(event) =>
                  setSelected(
                    event.currentTarget.checked ? [...selected, kind] : selected.filter((one) => one !== kind),
                  )
                }
              />
              <code>{kind}</code>
            </label>
          ))}
        </fieldset>
        <SelectField
          label="The old ones stay valid for"
          value={overlap}
          onInput={setOverlap}
          options={[
            ['0', 'no time: they end at once'],
            ['3600', 'an hour'],
            ['86400', 'a day'],
            ['604800', 'a week'],
          ]}
        />
      </Form>
    </Dialog>
  )
}

function Delete({ tenant, onDone, onClose }: DialogProps) {
  return (
    <Confirm
      title={`Delete ${tenant.name}`}
      submit={['Delete the tenant', 'Deleting …']}
      kind="danger"
      typed={tenant.name}
      onClose={onClose}
      onConfirm={async () => {
        await call('DELETE', pathOf(tenant))
        onDone()
      }}
    >
      <p>
        The tenant is not served from now on. Its data stays until the grace time is over, seven days by default; until
        then you can undelete it.
      </p>
    </Confirm>
  )
}
