// The program that checks a price file before it is used: check-prices-main.ts FILE
import { readFileSync } from 'node:fs'
import { defaultRateLimits } from '../quotas/index.ts'
import { checkPlans, readBillingConfig } from './billing-config.ts'

process.exitCode = check(process.argv.slice(2))

/**
 * Checks a price file.
 * @returns the exit code: 0 when the control plane would start with the file, else 1
 */
function check([file, ...more]: string[]): number {
  if (file === undefined || more.length > 0) {
    process.stderr.write('usage: npm run check-prices -- FILE\n')
    return 1
  }
  try {
    const config = readBillingConfig(readFileSync(file, 'utf8'), file)
    checkPlans(config, Object.keys(defaultRateLimits), file)
    process.stdout.write(
      `${file}: ${config.lists.length} price ${config.lists.length === 1 ? 'list' : 'lists'} in ${config.currency}, no errors\n`,
    )
    return 0
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    return 1
  }
}
