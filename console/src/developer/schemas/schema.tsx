// One schema as a document of JSON: add, edit, delete, reload.
import { useState } from 'preact/hooks'
import { ApiError, call } from '../../api/client.ts'
import { useLoad } from '../../api/use-load.ts'
import { Card, ScreenTitle } from '../../parts/basics.tsx'
import { Confirm } from '../../parts/confirm.tsx'
import { Empty, Load, Notice } from '../../parts/feedback.tsx'
import { Field, Form, useAction } from '../../parts/form.tsx'
import { linkTo, open } from '../../router.ts'
import { Reload } from './reload.tsx'
import { documentOf, newDocument, schemasPath, type SchemaRecord } from './schema-record.ts'

/** The screen of a schema; of a new one for the name `new`, which no saved schema needs. */
export function SchemaScreen({ name }: { name: string }) {
  const isNew = name === 'new'
  const load = useLoad<SchemaRecord[]>(isNew ? undefined : `${schemasPath}?name=eq.${encodeURIComponent(name)}`)
  const [isDeleting, setDeleting] = useState(false)
  const record = load.data?.[0]
  return (
    <>
      <p class="crumbs">
        <a href={linkTo(['schemas'])}>Schemas</a>
      </p>
      <ScreenTitle title={isNew ? 'Add a schema' : name}>
        {record !== undefined && (
          <button type="button" class="button danger" onClick={() => setDeleting(true)}>
            Delete the schema
          </button>
        )}
      </ScreenTitle>
      {isDeleting && record !== undefined && (
        <Confirm
          title="Delete the schema"
          submit={['Delete the schema', 'Deleting …']}
          kind="danger"
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await call('DELETE', `${schemasPath}/${encodeURIComponent(record.id)}`)
            open(linkTo(['schemas']))
          }}
        >
          <p>
            The next reload removes the endpoint of <strong>{record.name}</strong>, and keeps its table until you
            confirm to drop it.
          </p>
        </Confirm>
      )}
      {isNew ? (
        <Editor record={undefined} onSaved={() => undefined} />
      ) : (
        <Load load={load} what="the schema">
          {([found]) =>
            found === undefined ? (
              <Empty title="There is no such schema.">
                <a href={linkTo(['schemas'])}>Open all schemas</a>
              </Empty>
            ) : (
              <Editor key={found.id} record={found} onSaved={load.reload} />
            )
          }
        </Load>
      )}
      <Reload />
    </>
  )
}

function Editor({ record, onSaved }: { record: SchemaRecord | undefined; onSaved: () => void }) {
  const action = useAction()
  const [text, setText] = useState(record === undefined ? newDocument : documentOf(record))
  const [saved, setSaved] = useState<string | undefined>(undefined)
  const submit = async () => {
    setSaved(undefined)
    checkJson(text)
    const path = record === undefined ? schemasPath : `${schemasPath}/${encodeURIComponent(record.id)}`
    const { body } = await call<SchemaRecord>(record === undefined ? 'POST' : 'PATCH', path, { body: text })
    setSaved(body.name)
    if (record === undefined || body.name !== record.name) open(linkTo(['schemas', body.name]))
    else onSaved()
  }
  return (
    <Card title="Document">
      <Form
        action={action}
        onSubmit={submit}
        submit={record === undefined ? ['Add the schema', 'Adding …'] : ['Save the schema', 'Saving …']}
      >
        <Field
          label="Schema as JSON"
          hint="Types: uuid, string, number, boolean, datetime, json. Policies: ownership, public_read, authenticated, service."
        >
          {(attributes) => (
            <textarea
              {...attributes}
              class="code"
              rows={Math.min(30, text.split('\n').length + 2)}
              value={text}
              spellcheck={false}
              onInput={(event) => setText(event.currentTarget.value)}
            />
          )}
        </Field>
        {saved !== undefined && <Notice kind="good">Saved. Reload the schemas to apply it.</Notice>}
      </Form>
    </Card>
  )
}

/** @throws ApiError for a text that is not JSON */
function checkJson(text: string): void {
  try {
    JSON.parse(text)
  } catch (cause) {
    throw new ApiError(0, 'INVALID_JSON', `The document is not valid JSON: ${String(cause)}`, undefined)
  }
}
