// The dialog that creates a tenant, and offers its keys once.
import { useState } from 'preact/hooks'
import { call } from '../api/client.ts'
import type { CreatedTenant, Plan, Region } from '../api/types.ts'
import { useLoad } from '../api/use-load.ts'
import { Dialog } from '../parts/dialog.tsx'
import { Load } from '../parts/feedback.tsx'
import { fieldError, Form, SelectField, TextField, useAction } from '../parts/form.tsx'
import { Secrets } from '../parts/secrets.tsx'
import { linkTo, open } from '../router.ts'

/** Creates a tenant. */
export function CreateTenant({ onClose }: { onClose: () => void }) {
  const plans = useLoad<{ plans: Plan[] }>('/v1/plans')
  const regions = useLoad<{ regions: Region[] }>('/v1/regions')
  const [created, setCreated] = useState<CreatedTenant | undefined>(undefined)
  if (created !== undefined) {
    const { keys, database_url: databaseUrl } = created
    const close = () => {
      onClose()
      open(linkTo(['tenants', created.tenant_id]))
    }
    return (
      <Secrets
        title={`${created.name} was created`}
        file={`${created.name}-keys`}
        secrets={{ ...keys, database_url: databaseUrl }}
        onClose={close}
      />
    )
  }
  return (
    <Dialog title="Create a tenant" onClose={onClose}>
      <Load load={plans} what="plans">
        {({ plans: allPlans }) => (
          <Load load={regions} what="regions">
            {({ regions: allRegions }) => (
              <CreateForm plans={allPlans} regions={allRegions} onCreated={setCreated} onCancel={onClose} />
            )}
          </Load>
        )}
      </Load>
    </Dialog>
  )
}

interface CreateFormProps {
  plans: Plan[]
  regions: Region[]
  onCreated: (tenant: CreatedTenant) => void
  onCancel: () => void
}

function CreateForm({ plans, regions, onCreated, onCancel }: CreateFormProps) {
  const action = useAction()
  const [name, setName] = useState('')
  const [plan, setPlan] = useState(plans[0]?.id ?? '')
  const [region, setRegion] = useState(regions[0]?.id ?? '')
  const [isolation, setIsolation] = useState('')
  const isolations = regions.find(({ id }) => id === region)?.isolations ?? []
  const submit = async () => {
    const { body } = await call<CreatedTenant>('POST', '/v1/tenants', {
      body: { name, plan, region, ...(isolation === '' ? {} : { isolation }) },
      headers: { prefer: 'wait=5' },
    })
    onCreated(body)
  }
  return (
    <Form
      action={action}
      onSubmit={submit}
      submit={['Create the tenant', 'Creating the tenant …']}
      fields={['name', 'isolation']}
      onCancel={onCancel}
    >
      <TextField
        label="Name"
        value={name}
        onInput={setName}
        isRequired
        hint="The first label of its host name: 3 to 63 of a–z, 0–9 and hyphens."
        error={fieldError(action.error, 'name')}
      />
      <SelectField label="Plan" value={plan} onInput={setPlan} options={plans.map(({ id }) => id)} />
      <SelectField label="Region" value={region} onInput={setRegion} options={regions.map(({ id }) => id)} />
      <SelectField
        label="Isolation"
        value={isolation}
        onInput={setIsolation}
        options={[['', "The plan's own model"], ...isolations]}
        error={fieldError(action.error, 'isolation')}
      />
    </Form>
  )
}
