/** A certificate as `GET /api/certificates` shows it. */
export interface CertificateView {
    readonly id: number;
    readonly name: string;
    readonly source: 'upload' | 'acme' | 'engine';
    readonly domains: readonly string[];
    readonly issuer: string | null;
    readonly serial: string | null;
    readonly notBefore: string | null;
    readonly notAfter: string | null;
    readonly fingerprint256: string | null;
    readonly dnsProviderId: number | null;
    readonly autoRenew: boolean;
    readonly usedBy: readonly number[];
    readonly lastError: {
        readonly type: string;
        readonly title?: string;
        readonly detail: string;
        readonly status?: number;
        readonly at: string;
        readonly identifier?: { readonly type: string; readonly value: string };
    } | null;
    readonly nextAttemptAt: string | null;
    readonly version: number;
}

const day = 86_400_000;

/** How much of its life is left: a word and its tone. */
export function lifeOf({ notBefore, notAfter, lastError }: CertificateView): {
    readonly text: string;
    readonly tone: 'good' | 'warning' | 'bad' | 'neutral';
} {
    if (notAfter === null) {
        return lastError === null
            ? { text: 'not there yet', tone: 'neutral' }
            : { text: 'failed', tone: 'bad' };
    }
    const left = Date.parse(notAfter) - Date.now();
    const whole = Date.parse(notAfter) - Date.parse(notBefore ?? notAfter);
    if (left <= 0) {
        return { text: 'expired', tone: 'bad' };
    }
    // Short-lived ones are renewed when a third of their life is left.
    return left < Math.min(21 * day, whole / 4)
        ? { text: 'ends soon', tone: 'warning' }
        : { text: 'valid', tone: 'good' };
}
