// The program that checks an invoice without the installation: verify-main.ts INVOICE.json USAGE.json [USAGE.csv …]
import { readFile } from 'node:fs/promises'
import { Value } from 'typebox/value'
import { InvoiceContent } from './invoice.ts'
import { readExport } from './read-export.ts'
import { verifyInvoice } from './verify.ts'

const usage = `usage: verify-invoice INVOICE.json USAGE…
INVOICE.json  an invoice as the API returns it
USAGE         hours of its month, and of each month that it corrects: GET /v1/tenants/{id}/usage/{month}?granularity=hour, JSON or CSV`

process.exitCode = await verify(process.argv.slice(2))

/**
 * Verifies an invoice.
 * @returns 0: every figure is right; 1: some are not; 2: there is nothing to verify
 */
async function verify([invoiceFile, ...usageFiles]: string[]): Promise<number> {
  if (invoiceFile === undefined || usageFiles.length === 0) {
    process.stderr.write(`${usage}\n`)
    return 2
  }
  try {
    const invoice = await read(invoiceFile, readInvoice)
    const exports = await Promise.all(usageFiles.map((file) => read(file, readExport)))
    const wrong = verifyInvoice(invoice, {
      hours: exports.flatMap(({ hours }) => hours),
      corrections: exports.flatMap(({ corrections }) => corrections),
    })
    for (const error of wrong) process.stdout.write(`${error}\n`)
    const name = `${invoice.tenant_id} ${invoice.month}`
    const verdict =
      wrong.length === 0
        ? `${invoice.lines.length} lines, total ${invoice.currency} ${invoice.total}: every recomputed figure is the same`
        : 'NOT verified'
    process.stdout.write(`${name}: ${verdict}\n`)
    return wrong.length === 0 ? 0 : 1
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    return 2
  }
}

async function read<T>(file: string, parse: (text: string) => T): Promise<T> {
  const text = await readFile(file, 'utf8')
  try {
    return parse(text)
  } catch (cause) {
    throw new Error(`${file}: ${cause instanceof Error ? cause.message : 'unreadable'}`, { cause })
  }
}

function readInvoice(text: string): InvoiceContent {
  const given: unknown = JSON.parse(text)
  if (Value.Check(InvoiceContent, given)) return given
  const [first] = Value.Errors(InvoiceContent, given)
  throw new Error(`The file is not an invoice: ${first?.instancePath ?? ''} ${first?.message ?? ''}.`)
}
