/** What certificates need of the rest of the panel; `panel.ts` hands it over. */
import type { AuditDetail } from '@portico/sdk';

import type { Call } from '../../platform/call.ts';
import type { Transaction } from '../../platform/database/database.ts';
import type { TaskView } from '../../server/http/answer/task-view.ts';
import type { AcmeHttp } from './acme/client.ts';
import type { ExternalAccount } from './acme/jws.ts';
import type { DnsWriter } from './acme/order.ts';
import type { Problem } from './acme/problem.ts';

/** The running task, as its work sees it. */
export interface TaskRun {
    readonly signal: AbortSignal;
    progress(fraction: number | null, text?: string): void;
    log(text: string): void;
}

/** Starts tasks. Implemented by the feature tasks. */
export interface TaskStarter {
    start(options: {
        readonly kind: string;
        readonly title: string;
        readonly access: string;
        readonly call: Call;
        readonly key: string;
        readonly audit: AuditDetail;
        /** Writes what belongs to the task's beginning, in its transaction. */
        readonly also?: (tx: Transaction) => Promise<void>;
        work(run: TaskRun): Promise<unknown>;
    }): Promise<TaskView>;
}

/** Writes the records of challenges. Implemented by the feature dns-providers. */
export interface DnsWriters {
    /** @throws NOT_FOUND, TOOL_MISSING 50302 */
    writer(providerId: number): Promise<DnsWriter>;
    default(): number | null;
    existsIn(tx: Transaction, providerId: number): Promise<boolean>;
}

/** Hears what happens to certificates. */
export interface CertificateEvents {
    issued(event: {
        readonly id: number;
        readonly name: string;
        readonly domains: readonly string[];
        readonly notAfter: string;
        readonly renewed: boolean;
    }): void;
    expiring(event: {
        readonly id: number;
        readonly name: string;
        readonly domains: readonly string[];
        readonly notAfter: string;
        readonly daysLeft: number;
    }): void;
    failed(event: {
        readonly id: number;
        readonly name: string;
        readonly domains: readonly string[];
        readonly problem: Problem;
        readonly nextAttemptAt: string | null;
    }): void;
}

/** The settings that orders use when the request does not say. */
export interface CertificateSettings {
    readonly directory: string | null;
    readonly email: string | null;
    readonly eab: ExternalAccount | null;
    /** PEM of authorities that CAs may prove themselves with, beside the system's; null: none. */
    readonly roots: string | null;
}

/** The outside of certificates, as far as ordering them goes. */
export interface OrderPorts {
    readonly http: AcmeHttp;
    readonly tasks: TaskStarter;
    readonly dns: DnsWriters;
    readonly events: CertificateEvents;
    settings(): CertificateSettings;
    /** A call of the panel itself. */
    systemCall(): Call;
}
