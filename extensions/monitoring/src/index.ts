/** Metrics of the machine with history, alert rules and Prometheus text. */
import { defineMonitoring } from './definition.ts';
import { createMachine } from './sampling/sources/machine.ts';

export default defineMonitoring(createMachine());
