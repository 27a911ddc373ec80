/** Until when PHP's releases get fixes. Source: https://www.php.net/supported-versions.php and its page on unsupported branches. */

/** How far a release is supported by its makers. */
export type Support = 'supported' | 'security' | 'ended';

/** Last days of bug fixes and of security fixes, by release. */
const table: Readonly<Record<string, readonly [active: string, security: string]>> = {
    '5.6': ['2017-01-19', '2018-12-31'],
    '7.0': ['2018-01-04', '2019-01-10'],
    '7.1': ['2018-12-01', '2019-12-01'],
    '7.2': ['2019-11-30', '2020-11-30'],
    '7.3': ['2020-12-06', '2021-12-06'],
    '7.4': ['2021-11-28', '2022-11-28'],
    '8.0': ['2022-11-26', '2023-11-26'],
    '8.1': ['2023-11-25', '2025-12-31'],
    '8.2': ['2024-12-31', '2026-12-31'],
    '8.3': ['2025-12-31', '2027-12-31'],
    '8.4': ['2026-12-31', '2028-12-31'],
    '8.5': ['2027-12-31', '2029-12-31']
};
const warnDays = 90;
const dayMs = 86_400_000;

/** What is known of a release's support on a day. A release that the table does not know is newer than it. */
export function supportOf(
    release: string,
    now: Date
): { readonly status: Support; readonly endOfLife: string | null; readonly isNear: boolean } {
    const [active, security] = table[release] ?? [];
    if (active === undefined || security === undefined) {
        return { status: 'supported', endOfLife: null, isNear: false };
    }
    const today = now.toISOString().slice(0, 10);
    const status = today > security ? 'ended' : today > active ? 'security' : 'supported';
    const isNear = Date.parse(security) - now.getTime() < warnDays * dayMs;
    return { status, endOfLife: security, isNear };
}
