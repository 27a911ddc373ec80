/** Problems of what the panel serves and does: hosts, certificates and tasks, as far as the caller may see them. */
import type { Finding } from './finding.ts';
import { askPanel, type PanelQuestion } from './panel.ts';

const dayMs = 86_400_000;
/** A certificate that ends sooner is named. */
const certificateDays = 14;

interface HostRecord {
    readonly domain?: unknown;
    readonly state?: unknown;
    readonly stateMessage?: unknown;
}
interface CertificateRecord {
    readonly name?: unknown;
    readonly notAfter?: unknown;
    readonly lastError?: { readonly detail?: unknown } | null;
}
interface TaskRecord {
    readonly id?: unknown;
    readonly kind?: unknown;
    readonly title?: unknown;
    readonly finishedAt?: unknown;
    readonly error?: { readonly message?: unknown } | null;
}

/** Finds hosts that the engine does not serve as they are stored; null when the panel does not say. @param rows - the list of hosts */
export function findHostProblems(rows: unknown): Finding[] | null {
    return Array.isArray(rows)
        ? (rows as readonly HostRecord[])
              .filter(({ state }) => state === 'error' || state === 'pending')
              .map(({ domain, state, stateMessage }) => ({
                  kind: 'host',
                  severity: state === 'error' ? 'critical' : 'warning',
                  subject: String(domain),
                  message:
                      typeof stateMessage === 'string' && stateMessage !== ''
                          ? stateMessage
                          : 'The engine does not serve it as it is stored',
                  since: null,
                  remedy:
                      state === 'error'
                          ? 'Change the host so that the engine takes it'
                          : 'POST /api/proxyengine/reload'
              }))
        : null;
}

/** Finds certificates that could not be obtained, or that end in two weeks; null when the panel does not say. */
export async function findCertificateProblems(
    question: PanelQuestion,
    now: number
): Promise<Finding[] | null> {
    const rows = await askPanel(question, 'certificates.list');
    return Array.isArray(rows)
        ? (rows as readonly CertificateRecord[]).flatMap((row) => judgeCertificate(row, now))
        : null;
}

function judgeCertificate({ name, notAfter, lastError }: CertificateRecord, now: number): Finding[] {
    const left = typeof notAfter === 'string' ? (Date.parse(notAfter) - now) / dayMs : null;
    const isFailed = lastError != null;
    if (!isFailed && (left === null || left >= certificateDays)) {
        return [];
    }
    const detail = typeof lastError?.detail === 'string' ? `: ${lastError.detail}` : '';
    return [
        {
            kind: 'certificate',
            severity: left !== null && left >= 3 ? 'warning' : 'critical',
            subject: String(name),
            message: isFailed
                ? `It could not be obtained${detail}`
                : (left ?? 0) < 0
                  ? 'It has expired'
                  : `It ends in ${Math.floor(left ?? 0)} days`,
            since: null,
            remedy: isFailed
                ? 'Check that the names lead to this machine and that ports 80 and 443 are reachable'
                : 'Renew or replace the certificate'
        }
    ];
}

/** Finds tasks that failed in the last day; null when the panel does not say. */
export async function findTaskProblems(question: PanelQuestion, now: number): Promise<Finding[] | null> {
    const rows = await askPanel(question, 'tasks.list', { state: 'failed', limit: 100 });
    return Array.isArray(rows)
        ? (rows as readonly TaskRecord[]).flatMap(({ id, kind, title, finishedAt, error }): Finding[] =>
              typeof finishedAt === 'string' && now - Date.parse(finishedAt) < dayMs
                  ? [
                        {
                            kind: 'task',
                            severity: 'warning',
                            subject: `${typeof title === 'string' && title !== '' ? title : String(kind)} (${String(id)})`,
                            message: typeof error?.message === 'string' ? error.message : 'It failed',
                            since: finishedAt,
                            remedy: `GET /api/tasks/${String(id)}`
                        }
                    ]
                  : []
          )
        : null;
}
