// The dialog that inserts or edits a row, with a field for each column.
import { useState } from 'preact/hooks'
import { ApiError, call } from '../../api/client.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { Field, fieldError, Form, useAction } from '../../parts/form.tsx'
import type { TableColumn, TableDescription } from './description.ts'
import { bodyOf, isJsonType, jsonOf, rowPath, type Row } from './row-request.ts'

/** The value of a field: a text, null, or undefined for a column that is not sent. */
type Value = string | null | undefined

interface RowFormProps {
  table: TableDescription
  /** The row to edit; undefined to insert one. */
  row: Row | undefined
  onClose: () => void
  onDone: () => void
}

/** The form of a row. Only changed columns are sent. */
export function RowForm({ table, row, onClose, onDone }: RowFormProps) {
  const action = useAction()
  const [values, setValues] = useState<Record<string, Value>>({})
  const submit = async () => {
    const members = table.columns.flatMap((column): [string, string][] => {
      const value = values[column.name]
      return value === undefined ? [] : [[column.name, value === null ? 'null' : textOf(column, value)]]
    })
    const path = row === undefined ? `/rest/v1/${encodeURIComponent(table.name)}` : rowPath(table, row)
    if (path === undefined) throw new Error('The table has no primary key.')
    await call(row === undefined ? 'POST' : 'PATCH', path, { body: bodyOf(members) })
    onDone()
  }
  const title = row === undefined ? `Insert a row into ${table.name}` : `Edit the row of ${table.name}`
  return (
    <Dialog title={title} onClose={onClose}>
      <Form
        action={action}
        onSubmit={submit}
        submit={row === undefined ? ['Insert the row', 'Inserting …'] : ['Save the row', 'Saving …']}
        fields={table.columns.map(({ name }) => name)}
        onCancel={onClose}
      >
        {table.columns.map((column) => (
          <ColumnField
            key={column.name}
            column={column}
            before={row?.[column.name]}
            value={values[column.name]}
            error={fieldError(action.error, column.name)}
            onInput={(value) => setValues((others) => ({ ...others, [column.name]: value }))}
          />
        ))}
      </Form>
    </Dialog>
  )
}

/** @throws ApiError with the name of the field, as the API's own errors have it */
function textOf(column: TableColumn, value: string): string {
  try {
    return jsonOf(column, value)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : ''
    throw new ApiError(0, 'INVALID_JSON', `Field "${column.name}" is not valid JSON: ${reason}`, undefined)
  }
}

interface ColumnFieldProps {
  column: TableColumn
  /** The value of the edited row; undefined for a new row. */
  before: string | boolean | null | undefined
  value: Value
  error: string | undefined
  onInput: (value: Value) => void
}

function ColumnField({ column, before, value, error, onInput }: ColumnFieldProps) {
  const isNew = before === undefined
  const current = value === undefined ? (before ?? null) : value
  const text = current === null ? '' : String(current)
  const isNull = current === null && (!isNew || value === null)
  const hints = [
    column.type,
    ...(column.isKey ? ['primary key'] : []),
    ...(column.refersTo === undefined ? [] : [`refers to ${column.refersTo}`]),
    ...(column.default === undefined ? [] : [`default ${column.default}`]),
    ...(isNew && value === undefined
      ? [column.isRequired && column.default === undefined ? 'required' : 'not sent']
      : []),
    ...(isNull ? ['null'] : []),
  ]
  return (
    <div class="column-field">
      <Field label={column.name} hint={hints.join(' · ')} error={error}>
        {(attributes) => {
          if (column.type === 'boolean')
            return (
              <select
                {...attributes}
                value={text}
                onInput={(event) => onInput(event.currentTarget.value === '' ? undefined : event.currentTarget.value)}
              >
                <option value="">{isNew ? 'not sent' : 'unchanged'}</option>
                <option value="true">true</option>
                <option value="false">false</option>
              </select>
            )
          if (isJsonType(column.type) || text.includes('\n') || text.length > 80)
            return (
              <textarea
                {...attributes}
                rows={5}
                value={text}
                spellcheck={false}
                onInput={(event) => onInput(event.currentTarget.value)}
              />
            )
          return (
            <input
              {...attributes}
              type="text"
              value={text}
              autocomplete="off"
              spellcheck={false}
              onInput={(event) =>
                onInput(isNew && event.currentTarget.value === '' ? undefined : event.currentTarget.value)
              }
            />
          )
        }}
      </Field>
      {!column.isRequired && (
        <label class="check">
          <input
            type="checkbox"
            checked={isNull}
            onInput={(event) => onInput(event.currentTarget.checked ? null : isNew ? undefined : '')}
          />
          <span>
            <span class="hidden-text">{column.name} is </span>null
          </span>
        </label>
      )}
    </div>
  )
}
