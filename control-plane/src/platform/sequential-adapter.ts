// Prisma's Postgres adapter with transactions that send one query at a time.
import { PrismaPg } from '@prisma/adapter-pg'

type Adapter = Awaited<ReturnType<PrismaPg['connect']>>
type Transaction = Awaited<ReturnType<Adapter['startTransaction']>>

/**
 * Serializes the queries of a transaction. Prisma reads the relations of an `include` concurrently on the transaction's
 * only connection. node-postgres queues such queries with a warning and will reject them, so each query waits for the
 * previous one.
 */
export class SequentialPrismaPg extends PrismaPg {
  /** Connects as Prisma's adapter does. */
  override async connect(): Promise<Adapter> {
    const adapter = await super.connect()
    const startTransaction = adapter.startTransaction.bind(adapter)
    adapter.startTransaction = async (isolationLevel) => serialize(await startTransaction(isolationLevel))
    return adapter
  }
}

/** Changes the transaction itself, because its own methods call it too. A failed query does not block the next one. */
function serialize(transaction: Transaction): Transaction {
  let last: Promise<unknown> = Promise.resolve()
  const inTurn =
    <In, Out>(send: (query: In) => Promise<Out>) =>
    (query: In): Promise<Out> => {
      const response = last.then(() => send(query))
      last = response.catch(() => undefined)
      return response
    }
  transaction.queryRaw = inTurn(transaction.queryRaw.bind(transaction))
  transaction.executeRaw = inTurn(transaction.executeRaw.bind(transaction))
  return transaction
}
