/** The engine of a panel that must not touch one: as if none were installed. */
import {
    type EngineConfig,
    type EngineDriver,
    type EngineProcess,
    EngineUnavailable,
    type EngineUpstream
} from '../../engine/port.ts';
import type { ProxyOptions } from '../proxy.ts';

const reason = 'this panel runs without an engine';

/** A driver without a process. */
class AbsentEngine implements EngineDriver {
    process(): EngineProcess {
        return { state: 'missing', version: null, pid: null, startedAt: null, message: reason };
    }

    start(): Promise<boolean> {
        return Promise.reject(new EngineUnavailable(reason));
    }

    stop(): Promise<boolean> {
        return Promise.resolve(false);
    }

    load(): Promise<void> {
        return Promise.reject(new EngineUnavailable(reason));
    }

    validate(): Promise<void> {
        return Promise.reject(new EngineUnavailable(reason));
    }

    config(): Promise<EngineConfig | null> {
        return Promise.resolve(null);
    }

    answers(): Promise<boolean> {
        return Promise.resolve(false);
    }

    upstreams(): Promise<readonly EngineUpstream[]> {
        return Promise.reject(new EngineUnavailable(reason));
    }

    // eslint-disable-next-line require-yield -- there is no line
    async *logs(): AsyncGenerator<string> {
        return;
    }

    onChange(): void {
        // The state of an absent engine never changes.
    }

    close(): Promise<void> {
        return Promise.resolve();
    }
}

/** The proxy of a panel without an engine. */
export function withoutEngine(): ProxyOptions {
    return {
        driver: new AbsentEngine(),
        home() {
            throw new EngineUnavailable(reason);
        }
    };
}
