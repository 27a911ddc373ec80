/** HTTPS of a host: from what was sent to what is stored. */
import type { HostRow } from '../../../engine/change.ts';
import type { Site } from '../../../engine/site.ts';
import type { HostChange } from '../schema/bodies.ts';
import { mergePlain } from './merge.ts';
import type { Faults } from './normalise.ts';

type Secure = Pick<Site, 'ssl' | 'sslMode' | 'certificateId' | 'forceHttps' | 'hsts'>;

/** The fields of HTTPS. `forceHttps` follows `ssl` when `ssl` changes and `forceHttps` was not sent. */
export function buildTls(body: HostChange, kept: Secure, before: HostRow | null, faults: Faults): Secure {
    const ssl = mergePlain(body.ssl, kept.ssl, false);
    const switched = before === null || ssl !== before.site.ssl;
    const sslMode = mergePlain(body.sslMode, kept.sslMode, 'auto');
    const certificateId =
        body.certificateId === undefined
            ? sslMode === 'certificate'
                ? kept.certificateId
                : null
            : body.certificateId;
    const forceHttps = mergePlain(body.forceHttps, switched ? ssl : kept.forceHttps, ssl);
    const hsts = mergePlain(body.hsts, ssl && kept.hsts, false);
    if (certificateId !== null && sslMode !== 'certificate') {
        faults.add('certificateId', 'certificateId needs sslMode certificate');
    }
    if (certificateId === null && sslMode === 'certificate') {
        faults.add('certificateId', 'certificateId is required with sslMode certificate');
    }
    if (!ssl && forceHttps) {
        faults.add('forceHttps', 'forceHttps needs ssl');
    }
    if (!ssl && hsts) {
        faults.add('hsts', 'hsts needs ssl');
    }
    return { ssl, sslMode, certificateId, forceHttps, hsts };
}
