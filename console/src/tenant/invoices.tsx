// Invoices of a tenant: what the current month would cost, and the invoices of past months.
import type { InvoiceSummary, Paged, UpcomingInvoice } from '../api/types.ts'
import { useLoad } from '../api/use-load.ts'
import { money, percentOfRate } from '../format/numbers.ts'
import { utc } from '../format/times.ts'
import { Badge, Card } from '../parts/basics.tsx'
import { Empty, Load } from '../parts/feedback.tsx'
import { PagedTable, Table, usePages } from '../parts/table.tsx'
import type { TabProps } from './tab-props.ts'

/** The tab of invoices. */
export function InvoicesTab({ tenant }: TabProps) {
  const path = `/v1/tenants/${encodeURIComponent(tenant.tenant_id)}/invoices`
  const upcoming = useLoad<UpcomingInvoice>(`${path}/upcoming`)
  const pages = usePages<Paged & { invoices: InvoiceSummary[] }>(path)
  if (upcoming.error?.code === 'BILLING_OFF')
    return (
      <Card title="Invoices">
        <Empty title="This installation makes no invoices.">
          Set <code>TENANTRY_PRICES_FILE</code> to a price file, and start it again.
        </Empty>
      </Card>
    )
  return (
    <>
      <Card title="Upcoming invoice" actions={<Downloads path={`${path}/upcoming`} />}>
        <Load load={upcoming} what="the upcoming invoice">
          {(invoice) => <Upcoming invoice={invoice} />}
        </Load>
      </Card>
      <Card title="Invoices">
        <PagedTable
          pages={pages}
          what="invoices"
          label="Invoices"
          rowsOf={({ invoices }) => invoices}
          rowKey={({ invoice_id: id }) => id}
          columns={[
            { title: 'Month', cell: ({ month }) => <strong>{month}</strong> },
            { title: 'Number', cell: ({ number }) => number ?? <span class="dim">a draft has none</span> },
            { title: 'State', cell: ({ state }) => <Badge text={state} /> },
            { title: 'Net', isNumber: true, cell: ({ net, currency }) => money(net, currency) },
            { title: 'Total', isNumber: true, cell: ({ total, currency }) => money(total, currency) },
            { title: 'To pay', isNumber: true, cell: ({ payable, currency }) => `${payable} ${currency}` },
            { title: 'Files', cell: ({ invoice_id: id }) => <Downloads path={`${path}/${id}`} /> },
          ]}
          empty={<Empty title="There are no invoices yet.">The first one is made when the month is over.</Empty>}
        />
      </Card>
    </>
  )
}

function Downloads({ path }: { path: string }) {
  return (
    <span class="row-actions">
      {['pdf', 'csv', 'json'].map((form) => (
        <a key={form} class="button small" href={`${path}.${form}`} download>
          {form.toUpperCase()}
        </a>
      ))}
    </span>
  )
}

function Upcoming({ invoice }: { invoice: UpcomingInvoice }) {
  const { currency } = invoice
  return (
    <>
      <p class="dim">
        {invoice.month}, with the usage up to {utc(invoice.as_of)}
      </p>
      <Table
        label="Lines of the upcoming invoice"
        rows={invoice.lines.map((line, index) => ({ ...line, index }))}
        rowKey={({ index }) => String(index)}
        columns={[
          { title: 'Charge', cell: ({ description }) => description },
          { title: 'Quantity', isNumber: true, cell: ({ quantity_text: quantity }) => quantity ?? '–' },
          {
            title: 'Unit price',
            isNumber: true,
            cell: ({ unit_price: price }) => (price === null ? '–' : money(price, currency)),
          },
          { title: 'Amount', isNumber: true, cell: ({ amount }) => money(amount, currency) },
        ]}
      />
      <dl class="totals">
        <div>
          <dt>Net</dt>
          <dd>{money(invoice.net, currency)}</dd>
        </div>
        {invoice.taxes.map(({ name, rate, tax }) => (
          <div key={name}>
            <dt>
              {name} {percentOfRate(rate)} %
            </dt>
            <dd>{money(tax, currency)}</dd>
          </div>
        ))}
        <div class="totals-sum">
          <dt>To pay</dt>
          <dd>
            {invoice.payable} {currency}
          </dd>
        </div>
      </dl>
    </>
  )
}
