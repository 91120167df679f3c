// The logo.

/** @param size pixels */
export function Logo({ size }: { size: number }) {
  return (
    <svg viewBox="0 0 24 24" width={size} height={size} aria-hidden="true">
      <rect x="2" y="2" width="9" height="9" rx="2.5" />
      <rect x="13" y="2" width="9" height="9" rx="2.5" opacity=".55" />
      <rect x="2" y="13" width="9" height="9" rx="2.5" opacity=".55" />
      <rect x="13" y="13" width="9" height="9" rx="2.5" />
    </svg>
  )
}
