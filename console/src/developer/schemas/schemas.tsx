// The list of schemas: the documents that describe collections.
import { useLoad } from '../../api/use-load.ts'
import { Age, Card, ScreenTitle } from '../../parts/basics.tsx'
import { Empty, Load } from '../../parts/feedback.tsx'
import { Table } from '../../parts/table.tsx'
import { linkTo } from '../../router.ts'
import { Reload } from './reload.tsx'
import { schemasPath, type SchemaRecord } from './schema-record.ts'

/** The screen of all schemas. */
export function SchemasScreen() {
  const load = useLoad<SchemaRecord[]>(`${schemasPath}?order=name`)
  return (
    <>
      <ScreenTitle title="Schemas" note="Each document describes a collection: its fields, and who may see which rows">
        <a class="button primary" href={linkTo(['schemas', 'new'])}>
          Add a schema
        </a>
      </ScreenTitle>
      <Reload />
      <Card title="Documents">
        <Load load={load} what="the schemas">
          {(schemas) =>
            schemas.length === 0 ? (
              <Empty title="There are no schemas yet.">
                <a href={linkTo(['schemas', 'new'])}>Add the first one</a>, then reload.
              </Empty>
            ) : (
              <Table
                label="Schemas"
                rows={schemas}
                rowKey={({ id }) => id}
                columns={[
                  { title: 'Name', cell: ({ name }) => <a href={linkTo(['schemas', name])}>{name}</a> },
                  { title: 'Fields', isNumber: true, cell: ({ fields }) => fields.length },
                  { title: 'Policy', cell: ({ rls_policy: policy }) => policy?.type ?? 'service' },
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
