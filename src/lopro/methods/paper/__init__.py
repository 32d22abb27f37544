"""The paper's methods: one projection, LoPGD and LoPNAG, with the schedules of its theorems."""
