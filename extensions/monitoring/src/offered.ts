/** The contract on the services of this generation. */
import type { MonitoringContract } from './contract.ts';
import type { Services } from './services.ts';

/** The contract that `setup` returns. */
export function createContract({ monitor }: Services): MonitoringContract {
    return {
        alerts: async ({ rules }) => {
            const firing = monitor.journal.firing();
            return rules.map((rule) => {
                const newest = firing.find((alert) => alert.rule === rule);
                return {
                    rule,
                    firing: newest !== undefined,
                    since: newest === undefined ? null : new Date(newest.firedAt)
                };
            });
        }
    };
}
