// The list of the tenant's tables.
import { Badge, Card, ScreenTitle } from '../../parts/basics.tsx'
import { Empty, Load } from '../../parts/feedback.tsx'
import { Table } from '../../parts/table.tsx'
import { linkTo } from '../../router.ts'
import { useTables, type TableDescription } from './description.ts'

/** The screen of all tables. */
export function TablesScreen() {
  const load = useTables()
  return (
    <>
      <ScreenTitle title="Tables" note="What the REST interface serves, as the last reload published it">
        <a class="button primary" href={linkTo(['schemas', 'new'])}>
          Create a collection
        </a>
      </ScreenTitle>
      <Load load={load} what="the tables">
        {() => {
          const tables = load.tables ?? []
          const own = tables.filter(({ isOfService }) => !isOfService)
          return (
            <>
              <Card title="Your tables">
                {own.length === 0 ? (
                  <Empty title="There are no tables yet.">
                    <a href={linkTo(['schemas', 'new'])}>Describe the first collection</a>, then reload the schemas.
                    Tables that SQL has created appear after a reload, too.
                  </Empty>
                ) : (
                  <TableList label="Your tables" tables={own} />
                )}
              </Card>
              <Card title="Tables of the service">
                <TableList label="Tables of the service" tables={tables.filter(({ isOfService }) => isOfService)} />
              </Card>
            </>
          )
        }}
      </Load>
    </>
  )
}

function TableList({ label, tables }: { label: string; tables: TableDescription[] }) {
  return (
    <Table
      label={label}
      rows={tables}
      rowKey={({ name }) => name}
      columns={[
        { title: 'Name', cell: ({ name }) => <a href={linkTo(['tables', name])}>{name}</a> },
        { title: 'Columns', isNumber: true, cell: ({ columns }) => columns.length },
        {
          title: 'Primary key',
          cell: ({ columns }) => columns.flatMap(({ name, isKey }) => (isKey ? [name] : [])).join(', ') || '–',
        },
        {
          title: 'Access',
          cell: ({ isWritable }) => <Badge text={isWritable ? 'read and write' : 'read only'} kind="quiet" />,
        },
      ]}
    />
  )
}
