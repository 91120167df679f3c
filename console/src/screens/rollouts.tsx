// Rollouts: changes of images that are carried out tenant by tenant.
import { useState } from 'preact/hooks'
import { call } from '../api/client.ts'
import type { Paged, Region, Rollout } from '../api/types.ts'
import { useLoad } from '../api/use-load.ts'
import { wholeNumber } from '../format/numbers.ts'
import { Age, Badge, Card, ScreenTitle } from '../parts/basics.tsx'
import { Confirm } from '../parts/confirm.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Empty, Load } from '../parts/feedback.tsx'
import { fieldError, Form, SelectField, TextField, useAction } from '../parts/form.tsx'
import { PagedTable, usePages } from '../parts/table.tsx'
import { useIsAdmin } from '../session.ts'

const finished = ['succeeded', 'rolled_back', 'failed']

/** The screen of rollouts. */
export function RolloutsScreen() {
  const isAdmin = useIsAdmin()
  const pages = usePages<Paged & { rollouts: Rollout[] }>('/v1/rollouts', 'all')
  const [isCreating, setCreating] = useState(false)
  const [canceled, setCanceled] = useState<Rollout | undefined>(undefined)
  return (
    <>
      <ScreenTitle title="Rollouts" note="A new image for a region's dedicated tenants, in growing waves">
        {isAdmin && (
          <button type="button" class="button primary" onClick={() => setCreating(true)}>
            Start a rollout
          </button>
        )}
      </ScreenTitle>
      {isCreating && <StartRollout onClose={() => setCreating(false)} onStarted={pages.load.reload} />}
      {canceled !== undefined && (
        <Confirm
          title="Cancel the rollout"
          submit={['Cancel the rollout', 'Canceling …']}
          kind="danger"
          onClose={() => setCanceled(undefined)}
          onConfirm={async () => {
            await call('POST', `/v1/rollouts/${encodeURIComponent(canceled.id)}/cancel`)
            pages.load.reload()
          }}
        >
          <p>
            The {wholeNumber(canceled.moved)} tenants that have the new image of <strong>{canceled.component}</strong>{' '}
            get their former image back.
          </p>
        </Confirm>
      )}
      <Card>
        <PagedTable
          pages={pages}
          what="rollouts"
          label="Rollouts"
          rowsOf={({ rollouts }) => rollouts}
          rowKey={({ id }) => id}
          columns={[
            { title: 'State', cell: ({ state }) => <Badge text={state} /> },
            { title: 'Region', cell: ({ region }) => region },
            { title: 'Component', cell: ({ component }) => component },
            { title: 'Image', cell: ({ image }) => <code>{image}</code> },
            { title: 'Wave', isNumber: true, cell: ({ wave }) => wave },
            { title: 'Tenants moved', isNumber: true, cell: ({ moved }) => wholeNumber(moved) },
            { title: 'Started', cell: ({ created }) => <Age at={created} /> },
            { title: 'Error', cell: ({ error }) => error ?? <span class="dim">none</span> },
            {
              title: 'Action',
              cell: (rollout) =>
                isAdmin && !finished.includes(rollout.state) ? (
                  <button type="button" class="button small" onClick={() => setCanceled(rollout)}>
                    Cancel
                  </button>
                ) : (
                  <span class="dim">–</span>
                ),
            },
          ]}
          empty={
            <Empty title="No rollout has been started.">
              A rollout changes the image of tenants with their own services, one tenant first, and returns to the
              former image at the first unhealthy tenant.
            </Empty>
          }
        />
      </Card>
    </>
  )
}

function StartRollout({ onClose, onStarted }: { onClose: () => void; onStarted: () => void }) {
  const action = useAction()
  const regions = useLoad<{ regions: Region[] }>('/v1/regions')
  const [region, setRegion] = useState('')
  const [component, setComponent] = useState('runtime')
  const [image, setImage] = useState('')
  const [canary, setCanary] = useState('')
  return (
    <Dialog title="Start a rollout" onClose={onClose}>
      <Load load={regions} what="regions">
        {({ regions: all }) => (
          <Form
            action={action}
            submit={['Start the rollout', 'Starting …']}
            onCancel={onClose}
            fields={['region', 'image', 'canary']}
            onSubmit={async () => {
              const body = { region: region === '' ? all[0]?.id : region, component, image }
              await call('POST', '/v1/rollouts', { body: canary === '' ? body : { ...body, canary } })
              onStarted()
              onClose()
            }}
          >
            <SelectField
              label="Region"
              value={region === '' ? (all[0]?.id ?? '') : region}
              onInput={setRegion}
              options={all.map(({ id }) => id)}
              error={fieldError(action.error, 'region')}
            />
            <SelectField
              label="Component"
              value={component}
              onInput={setComponent}
              options={['runtime', 'postgres', 'cluster-member']}
            />
            <TextField
              label="Image"
              value={image}
              onInput={setImage}
              isRequired
              hint="A name with a tag or digest that the region's engine has."
              error={fieldError(action.error, 'image')}
            />
            <TextField
              label="First tenant"
              value={canary}
              onInput={setCanary}
              hint="A tenant's ID; empty: the region's oldest running tenant."
              error={fieldError(action.error, 'canary')}
            />
          </Form>
        )}
      </Load>
    </Dialog>
  )
}
