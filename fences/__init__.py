"""The fences room: the policy, the layers rendered from it, probes, the gate and the replay."""
