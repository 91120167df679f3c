// Aggregate functions.
import type { Page } from './page.ts'

export const aggregates: Page = {
  page: 'references/api/aggregate_functions',
  read: 'f518522',
  sections: [
    {
      section: 'Aggregates and groups',
      sql: `
        create table customers (
          id integer primary key, name text, city text, state text, subscription_date date);
        create table orders (
          id integer generated always as identity, amount numeric, quantity integer, order_date date, observation text,
          order_details jsonb, customer_id integer references customers);
        insert into orders (amount, quantity, order_date, observation, order_details) values
          (1000.50, 1, '2023-01-01', 'a', '{"tax_amount": 1000}'), (234.06, 2, '2023-01-01', 'b', '{"tax_amount": 200.5}'),
          (0, 3, '2023-01-01', null, '{"tax_amount": 34.06}'), (0, 4, '2023-01-01', null, '{}'),
          (0, 5, '2023-01-02', 'c', '{}'), (0, 6, '2023-01-02', null, '{}');`,
      requests: [
        { request: 'GET /orders?select=amount.sum()', response: { status: 200, body: [{ sum: 1234.56 }] } },
        {
          request: 'GET /orders?select=total_amount:amount.sum(),avg_amount:amount.avg(),total_quantity:quantity.sum()',
          response: { status: 200, body: [{ total_amount: 1234.56, avg_amount: 205.76, total_quantity: 21 }] },
        },
        {
          request: 'GET /orders?select=amount.sum(),amount.avg(),order_date',
          response: {
            status: 200,
            body: [
              { sum: 1234.56, avg: 308.64, order_date: '2023-01-01' },
              { sum: 0, avg: 0, order_date: '2023-01-02' },
            ],
          },
        },
        {
          request: 'GET /orders?select=count(),observation_count:observation.count(),order_date',
          response: {
            status: 200,
            body: [
              { count: 4, observation_count: 2, order_date: '2023-01-01' },
              { count: 2, observation_count: 1, order_date: '2023-01-02' },
            ],
          },
        },
        {
          request: 'GET /orders?select=order_details->tax_amount::numeric.sum()',
          response: { status: 200, body: [{ sum: 1234.56 }] },
        },
        { request: 'GET /orders?select=amount.avg()::int', response: { status: 200, body: [{ avg: 206 }] } },
      ],
    },
    {
      section: 'Aggregates and embedding',
      sql: `
        truncate orders;
        insert into customers values
          (1, 'Customer A', 'New York', 'NY', '2023-10-15'), (2, 'Customer B', 'Los Angeles', 'CA', '2013-10-01');
        insert into orders (amount, order_date, customer_id) values
          (215.22, '2023-09-01', 1), (900.73, '2023-09-02', 1), (5, '2023-09-02', 1),
          (329.71, '2023-09-01', 2), (425.87, '2023-09-03', 2);`,
      requests: [
        {
          request: 'GET /orders?select=amount.sum(),customers(name)',
          response: {
            status: 200,
            body: [
              { sum: 1120.95, customers: { name: 'Customer A' } },
              { sum: 755.58, customers: { name: 'Customer B' } },
            ],
          },
        },
        {
          request: 'GET /orders?select=amount.sum(),...customers(name)',
          response: {
            status: 200,
            body: [
              { sum: 1120.95, name: 'Customer A' },
              { sum: 755.58, name: 'Customer B' },
            ],
          },
        },
        {
          request: 'GET /customers?select=name,city,state,orders(amount.sum(),order_date)&orders.order=order_date',
          response: {
            status: 200,
            body: [
              {
                name: 'Customer A',
                city: 'New York',
                state: 'NY',
                orders: [
                  { sum: 215.22, order_date: '2023-09-01' },
                  { sum: 905.73, order_date: '2023-09-02' },
                ],
              },
              {
                name: 'Customer B',
                city: 'Los Angeles',
                state: 'CA',
                orders: [
                  { sum: 329.71, order_date: '2023-09-01' },
                  { sum: 425.87, order_date: '2023-09-03' },
                ],
              },
            ],
          },
          correction: 'the page states no order of the groups',
        },
        {
          request: 'GET /orders?select=order_date,...customers(subscription_date.max(),subscription_date.min())',
          response: {
            status: 200,
            body: [
              { order_date: '2023-09-01', max: '2023-10-15', min: '2013-10-01' },
              { order_date: '2023-09-02', max: '2023-10-15', min: '2023-10-15' },
              { order_date: '2023-09-03', max: '2013-10-01', min: '2013-10-01' },
            ],
          },
        },
      ],
    },
  ],
}
