// The buckets of the tenant.
import { useState } from 'preact/hooks'
import { call } from '../../api/client.ts'
import { useLoad } from '../../api/use-load.ts'
import { wholeNumber } from '../../format/numbers.ts'
import { Age, Badge, Bytes, Card, ScreenTitle } from '../../parts/basics.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { Empty, Load } from '../../parts/feedback.tsx'
import { fieldError, Form, SelectField, TextField, useAction } from '../../parts/form.tsx'
import { Table } from '../../parts/table.tsx'
import { linkTo, open } from '../../router.ts'

/** A bucket as the list shows it. */
export interface Bucket {
  id: string
  name: string
  policy: string
  file_count: number
  total_size: number
  /** ISO 8601. */
  updated_at: string
}

const policies: [policy: string, text: string][] = [
  ['private', 'private: only the owner of a file'],
  ['authenticated', 'authenticated: all signed-in users'],
  ['public', 'public: everyone reads'],
]

/** The screen of all buckets. */
export function BucketsScreen() {
  const load = useLoad<Bucket[]>('/storage/v1/bucket')
  const [isCreating, setCreating] = useState(false)
  return (
    <>
      <ScreenTitle title="Files" note="Buckets, and the files in them">
        <button type="button" class="button primary" onClick={() => setCreating(true)}>
          Create a bucket
        </button>
      </ScreenTitle>
      {isCreating && <CreateBucket onClose={() => setCreating(false)} />}
      <Card title="Buckets">
        <Load load={load} what="the buckets">
          {(buckets) =>
            buckets.length === 0 ? (
              <Empty title="There are no buckets yet.">Create the first one, then upload files to it.</Empty>
            ) : (
              <Table
                label="Buckets"
                rows={buckets}
                rowKey={({ id }) => id}
                columns={[
                  { title: 'Name', cell: ({ name }) => <a href={linkTo(['files', name])}>{name}</a> },
                  { title: 'Policy', cell: ({ policy }) => <Badge text={policy} kind="quiet" /> },
                  { title: 'Files', isNumber: true, cell: ({ file_count: count }) => wholeNumber(count) },
                  {
                    title: 'Size',
                    isNumber: true,
                    cell: ({ total_size: size }) => <Bytes bytes={size} />,
                  },
                  { title: 'Changed', cell: ({ updated_at: at }) => <Age at={at} /> },
                ]}
              />
            )
          }
        </Load>
      </Card>
    </>
  )
}

function CreateBucket({ onClose }: { onClose: () => void }) {
  const action = useAction()
  const [name, setName] = useState('')
  const [policy, setPolicy] = useState('private')
  return (
    <Dialog title="Create a bucket" onClose={onClose}>
      <Form
        action={action}
        submit={['Create the bucket', 'Creating …']}
        onCancel={onClose}
        fields={['name']}
        onSubmit={async () => {
          await call('POST', '/storage/v1/bucket', { body: { name, policy } })
          open(linkTo(['files', name]))
        }}
      >
        <TextField
          label="Name"
          value={name}
          onInput={setName}
          isRequired
          hint="3 to 63 of a-z, 0-9, hyphen and underscore."
          error={fieldError(action.error, 'name')}
        />
        <SelectField label="Policy" value={policy} onInput={setPolicy} options={policies} />
      </Form>
    </Dialog>
  )
}
