// Plans with their quotas, and the price lists.
import type { Plan, PriceLists } from '../api/types.ts'
import { useLoad } from '../api/use-load.ts'
import { shortBytes, wholeNumber } from '../format/numbers.ts'
import { Badge, Card, Facts, ScreenTitle } from '../parts/basics.tsx'
import { Empty, ErrorBox, Load, Loading } from '../parts/feedback.tsx'
import { Table } from '../parts/table.tsx'

const count = (value: number | null) => (value === null ? 'unlimited' : wholeNumber(value))
const bytes = (value: number | null) =>
  value === null ? 'unlimited' : <span title={`${wholeNumber(value)} bytes`}>{shortBytes(value)}</span>

/** The screen of plans and prices. */
export function PlansScreen() {
  const plans = useLoad<{ plans: Plan[] }>('/v1/plans')
  const prices = useLoad<PriceLists>('/v1/prices')
  const currency = prices.data?.currency ?? ''
  return (
    <>
      <ScreenTitle title="Plans and prices" />
      <Card title="Plans">
        <Load load={plans} what="plans">
          {({ plans: all }) => (
            <Table
              label="Plans"
              rows={all}
              rowKey={({ id }) => id}
              columns={[
                { title: 'Plan', cell: ({ id }) => <strong>{id}</strong> },
                { title: 'Isolation', cell: ({ isolation }) => isolation },
                { title: 'Documents', isNumber: true, cell: ({ quotas }) => bytes(quotas.documents_bytes) },
                { title: 'Files', isNumber: true, cell: ({ quotas }) => bytes(quotas.files_bytes) },
                {
                  title: 'Requests a month',
                  isNumber: true,
                  cell: ({ quotas }) => count(quotas.api_requests_per_month),
                },
                { title: 'Connections', isNumber: true, cell: ({ quotas }) => count(quotas.realtime_connections) },
                {
                  title: 'Rate',
                  cell: ({ rate_limit: rate }) =>
                    rate === null ? 'unlimited' : `${wholeNumber(rate.per_second)}/s, burst ${wholeNumber(rate.burst)}`,
                },
              ]}
            />
          )}
        </Load>
      </Card>
      {prices.error?.code === 'BILLING_OFF' ? (
        <Card title="Prices">
          <Empty title="This installation makes no invoices.">
            Set <code>TENANTRY_PRICES_FILE</code> to a price file, such as <code>examples/prices.json</code>, and start
            it again.
          </Empty>
        </Card>
      ) : prices.error !== undefined ? (
        <ErrorBox error={prices.error} onRetry={prices.reload} />
      ) : prices.data === undefined ? (
        <Loading what="prices" />
      ) : (
        [...prices.data.price_lists].reverse().map((list) => (
          <Card
            key={list.from}
            title={`Prices from ${list.from}`}
            actions={<Badge text={`${list.tax.name} ${list.tax.percent} %`} kind="quiet" />}
          >
            <div class="columns">
              {Object.entries(list.plans).map(([plan, { fee, minimum, resources = {} }]) => (
                <div key={plan} class="price">
                  <h3>{plan}</h3>
                  <Facts
                    facts={[
                      ['Monthly fee', `${fee} ${currency}`],
                      ...(minimum === undefined
                        ? []
                        : [['Monthly minimum', `${minimum} ${currency}`] as [string, string]]),
                      ...Object.entries(resources).map(([name, { unit, included, tiers }]): [string, string] => [
                        name,
                        [
                          ...(included === undefined ? [] : [`${included} ${unit} included`]),
                          ...tiers.map(
                            ({ up_to: upTo, price }) =>
                              `${price} ${currency} per ${unit}${upTo === undefined ? '' : ` up to ${upTo}`}`,
                          ),
                        ].join(', then '),
                      ]),
                    ]}
                  />
                </div>
              ))}
            </div>
          </Card>
        ))
      )}
    </>
  )
}
