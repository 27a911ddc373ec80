import type { CompileContext } from '../../../core/src/engine/render/compile/context.ts';
import { engineFeatures } from '../../../core/src/engine/render/features.ts';
import type { Site } from '../../../core/src/engine/site.ts';

/** A site with every option off: a proxy for `domain`. */
export const testSite = (over: Partial<Site> = {}): Site => ({
    id: 1,
    domain: 'a.test',
    aliases: [],
    type: 'proxy',
    enabled: true,
    maintenance: false,
    upstreams:
        over.type === undefined || over.type === 'proxy' ? [{ address: '127.0.0.1:9', weight: 1 }] : [],
    ssl: false,
    sslMode: 'auto',
    certificateId: null,
    forceHttps: false,
    hsts: false,
    loadBalancing: null,
    healthCheck: null,
    locations: [],
    headers: { request: [], response: [] },
    access: { allow: [], deny: [], basicAuth: [], forwardAuth: null },
    cors: null,
    securityHeaders: false,
    compression: false,
    bodyLimitBytes: null,
    timeouts: null,
    errorPages: [],
    redirect: null,
    static: null,
    php: null,
    advanced: [],
    ...over
});

/** A context for the renderer; its folders need not exist. */
export const testContext = (): CompileContext => ({
    settings: {
        httpPort: 80,
        httpsPort: 443,
        acmeEmail: null,
        acmeDirectory: null,
        acmeEab: null,
        accessLog: false
    },
    folders: {
        adminSocket: '/run/portico/admin.sock',
        storage: '/var/lib/portico/storage',
        table: '/run/portico/table',
        certificates: '/run/portico/certificates',
        logFile: '/var/lib/portico/engine.log',
        accessLogFile: '/var/lib/portico/access.log'
    },
    features: engineFeatures({ text: '2.6.2', major: 2, minor: 6, patch: 2 })
});
